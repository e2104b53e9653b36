//! In what two headers differ, for people.

use std::collections::BTreeSet;

use serde_json::Value;

/// The fields in which two headers differ.
pub(crate) fn differences(there: &Value, now: &Value) -> Vec<String> {
    let mut differences = Vec::new();
    compare("", there, now, &mut differences);
    differences
}

fn compare(field: &str, there: &Value, now: &Value, differences: &mut Vec<String>) {
    if let (Value::Object(left), Value::Object(right)) = (there, now) {
        let keys: BTreeSet<_> = left.keys().chain(right.keys()).collect();
        for key in keys {
            let name = if field.is_empty() { key.clone() } else { format!("{field}.{key}") };
            compare(&name, &there[key], &now[key], differences);
        }
    } else if there != now {
        differences.push(format!("{field}: {} there, {} now", short(there), short(now)));
    }
}

/// A value of a header for people.
fn short(value: &Value) -> String {
    const LONGEST: usize = 20;
    let text = if value.is_null() { "none".to_owned() } else { value.to_string() };
    if text.chars().count() <= LONGEST {
        return text;
    }
    text.chars().take(LONGEST - 1).chain(['…']).collect()
}

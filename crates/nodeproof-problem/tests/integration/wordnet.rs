//! The bundled graph is what `data/wordnet.py` makes of WordNet, where Python and WordNet are at hand.

use std::path::Path;
use std::process::Command;

#[test]
fn the_bundled_graph_is_what_its_script_makes() {
    if !Path::new("/usr/share/wordnet/data.noun").is_file() {
        println!("skipped: no WordNet in /usr/share/wordnet; on Debian and Ubuntu, apt-get install wordnet-base");
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/wordnet.py");
    let Ok(output) = Command::new("python3").arg("-B").arg(script).arg("--check").output() else {
        println!("skipped: no python3");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    // Another zlib may pack the same arrays into other bytes.
    let same = output.status.success() || text.contains("holds the same arrays");
    assert!(same, "{text}{}", String::from_utf8_lossy(&output.stderr));
}

//! Checkpoints: the bytes of one, or, after `{`, a hash that fits: progress on the first line, then numbers for the tensors.
#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use nodeproof::train::Trainer;
use nodeproof::{Method, Split, TrainSettings};
use nodeproof_fuzz::{example_graph, file, path};
use nodeproof_problem::Model;
use nodeproof_problem::checkpoint::Checkpoint;

/// A training that can be resumed, and a checkpoint of it.
struct Training {
    trainer: Trainer<'static>,
    checkpoint: Checkpoint,
}

impl Training {
    fn new() -> Self {
        let graph = Box::leak(Box::new(example_graph()));
        let split = Split::new(graph.nodes(), graph.node_ids().collect(), vec![]).unwrap();
        let split = Box::leak(Box::new(split));
        let mut settings = TrainSettings::new(Method::CrossEntropy);
        settings.hidden = Some(vec![2]);
        let trainer = Trainer::new(graph, split, settings).unwrap();
        let path = path("first.checkpoint");
        trainer.write_checkpoint(&path).unwrap();
        let run = Model::read_metadata(&path).unwrap()["run"].clone();
        Self { trainer, checkpoint: Checkpoint::read(&path, &run).unwrap() }
    }

    /// Goes on from `path` if that is possible.
    fn resume(&mut self, path: &std::path::Path) {
        if self.trainer.resume(path).is_err() {
            return;
        }
        let copy = nodeproof_fuzz::path("copy.checkpoint");
        self.trainer.write_checkpoint(&copy).unwrap();
        let before = self.trainer.current().clone();
        self.trainer.resume(&copy).unwrap();
        assert_eq!(*self.trainer.current(), before);
        drop(self.trainer.step());
    }
}

thread_local!(static TRAINING: RefCell<Training> = RefCell::new(Training::new()));

fuzz_target!(|bytes: &[u8]| {
    TRAINING.with_borrow_mut(|training| {
        let Some(text) = std::str::from_utf8(bytes).ok().filter(|text| text.starts_with('{')) else {
            let path = file("run.checkpoint", bytes);
            Checkpoint::is_at(&path);
            return training.resume(&path);
        };
        let (progress, numbers) = text.split_once('\n').unwrap_or((text, ""));
        let mut numbers = numbers.split_whitespace().map(|word| word.parse().unwrap_or(f64::NAN));
        let mut checkpoint = training.checkpoint.clone();
        checkpoint.progress = progress.to_owned();
        for values in checkpoint.groups.iter_mut().flat_map(|(_, tensors)| tensors).rev() {
            values.iter_mut().zip(&mut numbers).for_each(|(value, number)| *value = number);
        }
        let path = path("run.checkpoint");
        checkpoint.write(&path).unwrap();
        training.resume(&path);
    });
});

//! The compiled half of the Python package `nodeproof`: it converts between Python's objects and the library's, and does no
//! mathematics. People meet it through `python/nodeproof`, which has the documentation.

mod arrays;
mod budget;
mod certificates;
mod certify;
mod check;
mod collective;
mod earlier;
mod errors;
mod figure;
mod files;
mod graph;
mod lines;
mod model;
mod names;
mod radii;
mod report;
mod robust_loss;
mod settings;
mod shards;
mod split;
mod story;
mod train;
mod work;

use pyo3::prelude::*;

/// `nodeproof._core`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<graph::PyGraph>()?;
    module.add_class::<split::PySplit>()?;
    module.add_class::<model::PyModel>()?;
    module.add_class::<budget::PyBudget>()?;
    module.add_class::<settings::PySettings>()?;
    module.add_class::<certificates::PyCertificates>()?;
    module.add_class::<earlier::PyEarlier>()?;
    module.add_class::<radii::PyRadii>()?;
    module.add_class::<collective::PyCollectives>()?;
    module.add_class::<figure::PyFigure>()?;
    module.add_class::<robust_loss::PyRobustLoss>()?;
    module.add_class::<robust_loss::PyLogits>()?;
    module.add_function(wrap_pyfunction!(budget::check_local_budget, module)?)?;
    module.add_function(wrap_pyfunction!(certify::certify, module)?)?;
    module.add_function(wrap_pyfunction!(certify::certify_budgets, module)?)?;
    module.add_function(wrap_pyfunction!(certify::radius, module)?)?;
    module.add_function(wrap_pyfunction!(collective::collective, module)?)?;
    module.add_function(wrap_pyfunction!(shards::certify_shards, module)?)?;
    module.add_function(wrap_pyfunction!(shards::radius_shards, module)?)?;
    module.add_function(wrap_pyfunction!(story::explain, module)?)?;
    module.add_function(wrap_pyfunction!(story::flip_in_words, module)?)?;
    module.add_function(wrap_pyfunction!(story::edges_in_words, module)?)?;
    module.add_function(wrap_pyfunction!(train::train, module)?)?;
    module.add_function(wrap_pyfunction!(train::accuracy, module)?)?;
    module.add_function(wrap_pyfunction!(report::report, module)?)?;
    module.add_function(wrap_pyfunction!(figure::plot_certificates, module)?)?;
    module.add_function(wrap_pyfunction!(figure::plot_collective, module)?)?;
    module.add_function(wrap_pyfunction!(figure::plot_radii, module)?)?;
    module.add_function(wrap_pyfunction!(figure::plot_degree, module)?)?;
    module.add_function(wrap_pyfunction!(figure::plot_purity, module)?)?;
    module.add_function(wrap_pyfunction!(figure::plot_training, module)?)?;
    module.add_function(wrap_pyfunction!(names::did_you_mean, module)?)?;
    module.add_function(wrap_pyfunction!(files::check_destination, module)?)?;
    module.add_function(wrap_pyfunction!(files::write_file, module)?)?;
    Ok(())
}

//! The attention by whose pipelines a scheme is judged.

use crate::error::Result;
use crate::ir::attention::{Attention, Mask};
use crate::ir::pipeline_key::PipelineKey;
use crate::ir::value::{Label, LabelName, Origin, Values};
use crate::kernels::catalog::Catalog;
use crate::kernels::launch::pipelines_of;
use crate::shape::attention::{Extents, Rules};
use crate::shape::{DType, Shape};

/// The pipelines of attention over 1,024 tokens: as in GPT-2, of wide heads with halves and everything that scores can
/// get, and of one query over 4,096 keys.
pub(crate) fn inspected(catalog: &Catalog) -> Result<Vec<PipelineKey>> {
    let extents = |tokens, keys, depth| Extents {
        batches: 1,
        kv_heads: 12,
        group: 1,
        tokens,
        keys,
        depth,
        width: depth,
        shared: false,
    };
    let causal = Rules { causal: true, ..Rules::default() };
    let all = Rules { window: Some(512), cap: Some(30.0), ..causal };
    let (mut values, mut commands) = (Values::default(), Vec::new());
    for (extents, rules, dtype) in [
        (extents(1024, 1024, 64), causal, DType::F32),
        (extents(1024, 1024, 128), all, DType::F16),
        (extents(1, 4096, 64), causal, DType::F32),
        (extents(4, 4096, 128), all, DType::F16),
    ] {
        let mut value =
            |extents: [usize; 3], dtype| values.add_value(Shape::from(extents), dtype, Origin::Produced);
        let Extents { kv_heads: heads, tokens, keys, depth, .. } = extents;
        let [q, output] = [dtype, DType::F32].map(|dtype| value([heads, tokens, depth], dtype));
        let [k, v] = [0; 2].map(|_| value([heads, keys, depth], dtype));
        let mask = value([1, tokens, keys], DType::F32);
        let mask = Mask { value: mask, added: true, strides: [0, 0, keys as u32, 1] };
        let mask = rules.cap.map(|_| mask);
        let attention = Attention { extents, rules, scale: 0.125, q, k, v, mask, length: None, output };
        let label = Label { op: LabelName::Op(super::OP), shape: Shape::default(), dtype };
        attention.lower(&label, &mut values, catalog, &mut commands)?;
    }
    Ok(pipelines_of(commands))
}

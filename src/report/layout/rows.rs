//! Which row a box stands in.

use std::collections::BTreeMap;

use super::Item;

/// Every box below all that leads to it and below all earlier stages, as high up as that allows; boxes without a stage
/// right above what they lead to. No row has more than `most`.
pub(super) fn assign(items: &[Item], edges: &[(usize, usize)], most: usize) -> Vec<usize> {
    let (mut above, mut below) = (vec![Vec::new(); items.len()], vec![Vec::new(); items.len()]);
    for &(from, to) in edges {
        above[to].push(from);
        below[from].push(to);
    }
    let mut rows = vec![0i64; items.len()];
    let mut taken: BTreeMap<i64, usize> = BTreeMap::new();
    let (mut stage, mut floor, mut last) = (0, 0, -1);
    for (i, item) in items.iter().enumerate() {
        let Some(own) = item.stage else { continue };
        if own > stage {
            (stage, floor) = (own, last + 1);
        }
        let after = above[i].iter().filter(|&&from| items[from].stage.is_some()).map(|&from| rows[from] + 1);
        rows[i] = after.fold(floor, i64::max);
        while taken.get(&rows[i]).is_some_and(|n| *n >= most) {
            rows[i] += 1;
        }
        *taken.entry(rows[i]).or_default() += 1;
        last = last.max(rows[i]);
    }
    // From the back, for one without a stage may lead to another.
    for (i, _) in items.iter().enumerate().rev().filter(|(_, item)| item.stage.is_none()) {
        rows[i] = below[i].iter().map(|&to| rows[to]).min().unwrap_or(0) - 1;
        while taken.get(&rows[i]).is_some_and(|n| *n >= most) {
            rows[i] -= 1;
        }
        *taken.entry(rows[i]).or_default() += 1;
    }
    let first = rows.iter().copied().min().unwrap_or(0);
    rows.into_iter().map(|row| (row - first) as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(stages: &[Option<usize>]) -> Vec<Item> {
        stages.iter().map(|&stage| Item { width: 1.0, height: 1.0, stage }).collect()
    }

    #[test]
    fn a_box_stands_below_what_leads_to_it_and_below_earlier_stages() {
        let diamond = items(&[Some(0); 4]);
        assert_eq!(assign(&diamond, &[(0, 1), (1, 2), (0, 3), (2, 3)], 6), [0, 1, 2, 3]);
        let stages = items(&[Some(0), Some(0), Some(1), Some(1)]);
        assert_eq!(assign(&stages, &[(0, 1)], 6), [0, 1, 2, 2]);
    }

    #[test]
    fn an_input_stands_right_above_its_first_reader() {
        let graph = items(&[None, None, Some(0), Some(1), Some(2)]);
        assert_eq!(assign(&graph, &[(0, 2), (1, 4), (2, 3), (3, 4)], 6), [0, 2, 1, 2, 3]);
        assert_eq!(assign(&items(&[None]), &[], 6), [0]);
    }

    #[test]
    fn a_full_row_goes_on_in_the_next_one() {
        let rows = assign(&items(&[Some(0), Some(0), Some(0), Some(0), Some(0), Some(1)]), &[], 2);
        assert_eq!(rows, [0, 0, 1, 1, 2, 3]);
        let rows = assign(&items(&[None, None, None, Some(0)]), &[(0, 3), (1, 3), (2, 3)], 2);
        assert_eq!(rows, [0, 1, 1, 2]);
    }
}

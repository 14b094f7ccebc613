//! Timestamps of a command slot: query pools that are added when the last one is full.

use std::sync::atomic::Ordering;

use ash::vk;

use super::check;
use super::device::Device;
use crate::error::Result;

/// Queries of one pool.
const POOL_QUERIES: u32 = 128;

/// When a timestamp is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// When the device reaches the command, whatever earlier ones are still doing.
    Reached,
    /// When all earlier commands are done.
    Done,
}

/// The timestamps that a slot's command buffer writes, in order.
#[derive(Debug, Default)]
pub(crate) struct TimestampStore {
    pools: Vec<vk::QueryPool>,
    written: u32,
}

impl TimestampStore {
    /// Makes all queries new, to be recorded anew.
    pub(crate) fn reset(&mut self, device: &Device) {
        self.rearm(device);
        self.written = 0;
    }

    /// Makes the queries new for the same commands. By the host where it can; otherwise `write` has put the resets into
    /// the command buffer.
    pub(crate) fn rearm(&self, device: &Device) {
        if device.info.features.host_query_reset {
            let used = self.written.div_ceil(POOL_QUERIES) as usize;
            for &pool in &self.pools[..used] {
                // SAFETY: contracts 2, 4 and 7.
                unsafe { device.raw.reset_query_pool(pool, 0, POOL_QUERIES) };
            }
        }
    }

    /// Records the next timestamp.
    pub(crate) fn write(&mut self, device: &Device, commands: vk::CommandBuffer, stamp: Stamp) -> Result<()> {
        let (nth, query) = ((self.written / POOL_QUERIES) as usize, self.written % POOL_QUERIES);
        let fresh = nth == self.pools.len();
        if fresh {
            let info = vk::QueryPoolCreateInfo::default()
                .query_type(vk::QueryType::TIMESTAMP)
                .query_count(POOL_QUERIES);
            // SAFETY: contracts 1 and 6.
            let pool = unsafe { device.raw.create_query_pool(&info, None) };
            let pool = check("vkCreateQueryPool", pool)?;
            device.grown.query_pools.fetch_add(1, Ordering::Relaxed);
            device.name_object(pool, "tidemill timestamps");
            self.pools.push(pool);
        }
        let pool = self.pools[nth];
        if !device.info.features.host_query_reset {
            if query == 0 {
                // SAFETY: contracts 2 and 3; commands on queries are carried out in their order.
                unsafe { device.raw.cmd_reset_query_pool(commands, pool, 0, POOL_QUERIES) };
            }
        } else if fresh {
            // SAFETY: contracts 2 and 7; nothing has used the pool yet.
            unsafe { device.raw.reset_query_pool(pool, 0, POOL_QUERIES) };
        }
        let stage = match stamp {
            Stamp::Reached => vk::PipelineStageFlags2::TOP_OF_PIPE,
            Stamp::Done => vk::PipelineStageFlags2::ALL_COMMANDS,
        };
        // The queue has timestamps, and the query was reset.
        device.write_timestamp(commands, stage, pool, query);
        self.written += 1;
        Ok(())
    }

    /// The raw ticks, all bits. A query that is not there is an error, never a wait.
    pub(crate) fn read(&self, device: &Device) -> Result<Vec<u64>> {
        let mut ticks = vec![0u64; self.written as usize];
        for (part, &pool) in ticks.chunks_mut(POOL_QUERIES as usize).zip(&self.pools) {
            // SAFETY: contracts 2 and 4; `part` has a place for each query asked for.
            let read =
                unsafe { device.raw.get_query_pool_results(pool, 0, part, vk::QueryResultFlags::TYPE_64) };
            check("vkGetQueryPoolResults", read)?;
        }
        Ok(ticks)
    }

    pub(crate) fn destroy(&mut self, device: &Device) {
        for pool in self.pools.drain(..) {
            // SAFETY: contracts 1 and 4.
            unsafe { device.raw.destroy_query_pool(pool, None) };
        }
    }
}

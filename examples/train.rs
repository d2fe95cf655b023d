//! A training loop that can be stopped at any moment and goes on where its last checkpoint was.
//!
//!   train DIR         trains to the end; called again, it goes on at the last checkpoint
//!   train DIR STOP    is interrupted after batch STOP, without a checkpoint
//!
//! The rows take more memory than the store may use: the others are on disk, and a second thread
//! brings those of the next batch up while this one is trained.

use std::ffi::{c_void, CStr, CString};
use std::os::raw::c_char;
use std::ptr::null_mut;

const DIM: usize = 64;
const BATCH: usize = 2048;
const BATCHES: u64 = 100;
const BATCHES_PER_CHECKPOINT: u64 = 20;

const OK: i32 = 0;
const NOT_FOUND: i32 = 5;
const OPEN_CREATE: u32 = 1;
const MISSING_CREATE: i32 = 0;
const OPT_ADAGRAD: i32 = 2;
const INIT_UNIFORM: i32 = 2;

#[repr(C)]
struct StoreOptions {
    struct_size: u32,
    flags: u32,
    path: *const c_char,
    dram_bytes: u64,
    ssd_bytes: u64,
    pmem_path: *const c_char,
    pmem_bytes: u64,
    hbm_bytes: u64,
    cuda_device: i32,
    worker_threads: u32,
    seed: u64,
    durability: i32,
    warmup_iters: u32,
    flush_iters: u32,
    reserved: u32,
    pin_batches: u32,
    reserved_2: u32,
}

#[repr(C)]
struct TableOptions {
    struct_size: u32,
    dim: u32,
    value_type: i32,
    optimizer: i32,
    learning_rate: f32,
    beta1: f32,
    beta2: f32,
    epsilon: f32,
    weight_decay: f32,
    initial_accumulator: f32,
    initializer: i32,
    init_a: f32,
    init_b: f32,
    eviction: i32,
    admission_count: u32,
    on_full: i32,
}

#[repr(C)]
#[derive(Default)]
struct TableInfo {
    struct_size: u32,
    dim: u32,
    value_type: i32,
    optimizer: i32,
    rows: u64,
    rows_hbm: u64,
    rows_dram: u64,
    rows_pmem: u64,
    rows_ssd: u64,
    row_bytes: u64,
}

#[link(name = "embank")]
extern "C" {
    fn embank_status_name(code: i32) -> *const c_char;
    fn embank_last_error() -> *const c_char;
    fn embank_store_options_init(options: *mut StoreOptions, struct_size: u32);
    fn embank_store_open(options: *const StoreOptions, store: *mut *mut c_void) -> i32;
    fn embank_store_close(store: *mut c_void) -> i32;
    fn embank_table_options_init(options: *mut TableOptions, struct_size: u32);
    fn embank_table_create(
        store: *mut c_void,
        name: *const c_char,
        options: *const TableOptions,
        table: *mut *mut c_void,
    ) -> i32;
    fn embank_table_open(store: *mut c_void, name: *const c_char, table: *mut *mut c_void) -> i32;
    fn embank_table_get_info(table: *mut c_void, info: *mut TableInfo) -> i32;
    fn embank_lookup(
        table: *mut c_void,
        keys: *const u64,
        n: u64,
        missing: i32,
        rows: *mut f32,
        row_stride: u64,
        outcomes: *mut u8,
    ) -> i32;
    fn embank_apply_gradients(
        table: *mut c_void,
        keys: *const u64,
        n: u64,
        gradients: *const f32,
        row_stride: u64,
        outcomes: *mut u8,
    ) -> i32;
    fn embank_prefetch(table: *mut c_void, keys: *const u64, n: u64) -> i32;
    fn embank_scan_open(table: *mut c_void, scan: *mut *mut c_void) -> i32;
    fn embank_scan_next(
        scan: *mut c_void,
        keys: *mut u64,
        rows: *mut f32,
        row_stride: u64,
        cap: u64,
        n: *mut u64,
    ) -> i32;
    fn embank_scan_close(scan: *mut c_void);
    fn embank_checkpoint(store: *mut c_void, blob: *const u8, bytes: u64, number: *mut u64) -> i32;
    fn embank_checkpoint_blob(store: *mut c_void, blob: *mut u8, cap: u64, needed: *mut u64)
        -> i32;
}

fn check(status: i32, what: &str) {
    if status == OK {
        return;
    }
    let (name, message) = unsafe {
        (CStr::from_ptr(embank_status_name(status)), CStr::from_ptr(embank_last_error()))
    };
    eprintln!("{what}: {}: {}", name.to_string_lossy(), message.to_string_lossy());
    std::process::exit(1);
}

/// A handle of a table. Data calls may come from any thread.
#[derive(Clone, Copy)]
struct Table(*mut c_void);
unsafe impl Send for Table {}
unsafe impl Sync for Table {}

fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E3779B97F4A7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58476D1CE4E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D049BB133111EB);
    x ^ (x >> 31)
}

/// The data set: a batch asks for these keys, small ones more often.
fn keys_of(batch: u64) -> Vec<u64> {
    let key = |i: u64| {
        let random = mix(batch * BATCH as u64 + i) >> 40;
        (random * random) >> 32
    };
    (0..BATCH as u64).map(key).collect()
}

/// The model: each value of a row should become this.
fn target(key: u64, i: u64) -> f32 {
    ((key * 7 + i * 13) % 64) as f32 / 64.0 - 0.5
}

impl Table {
    /// A hint: rows that it does not bring are read later.
    fn prefetch(self, batch: u64) {
        let keys = keys_of(batch);
        check(unsafe { embank_prefetch(self.0, keys.as_ptr(), BATCH as u64) }, "prefetch");
    }

    /// Returns the loss: the mean square of the errors.
    fn train(self, batch: u64) -> f64 {
        let keys = keys_of(batch);
        let n = BATCH as u64;
        let mut rows = vec![0f32; BATCH * DIM];
        let status = unsafe {
            embank_lookup(
                self.0, keys.as_ptr(), n, MISSING_CREATE, rows.as_mut_ptr(), 0, null_mut())
        };
        check(status, "lookup");
        let error = |(p, value): (usize, &f32)| value - target(keys[p / DIM], (p % DIM) as u64);
        let gradients: Vec<f32> = rows.iter().enumerate().map(error).collect();
        let status = unsafe {
            embank_apply_gradients(self.0, keys.as_ptr(), n, gradients.as_ptr(), 0, null_mut())
        };
        check(status, "apply_gradients");
        let sum: f64 = gradients.iter().map(|&g| f64::from(g) * f64::from(g)).sum();
        sum / gradients.len() as f64
    }

    fn print_rows(self) {
        let size = std::mem::size_of::<TableInfo>() as u32;
        let mut info = TableInfo { struct_size: size, ..Default::default() };
        check(unsafe { embank_table_get_info(self.0, &mut info) }, "table_get_info");
        println!("in memory {} rows, on disk alone {}", info.rows_dram, info.rows_ssd);
        let (mut keys, mut rows) = (vec![0u64; BATCH], vec![0f32; BATCH * DIM]);
        let (mut total, mut checksum) = (0u64, 0u64);
        let mut scan = null_mut();
        check(unsafe { embank_scan_open(self.0, &mut scan) }, "scan_open");
        loop {
            let mut n = 0u64;
            let status = unsafe {
                embank_scan_next(
                    scan, keys.as_mut_ptr(), rows.as_mut_ptr(), 0, BATCH as u64, &mut n)
            };
            check(status, "scan_next");
            if n == 0 {
                break;
            }
            for (key, row) in keys.iter().zip(rows.chunks(DIM)).take(n as usize) {
                let hash = row.iter().fold(*key, |hash, v| mix(hash ^ u64::from(v.to_bits())));
                // A scan has no order, and a sum needs none.
                checksum = checksum.wrapping_add(hash);
            }
            total += n;
        }
        unsafe { embank_scan_close(scan) };
        println!("rows {total}, checksum {checksum:016x}");
    }
}

fn open_store(directory: &str) -> *mut c_void {
    let path = CString::new(directory).expect("a path without a zero byte");
    let mut store = null_mut();
    unsafe {
        let mut options: StoreOptions = std::mem::zeroed();
        embank_store_options_init(&mut options, std::mem::size_of::<StoreOptions>() as u32);
        options.path = path.as_ptr();
        options.flags = OPEN_CREATE;
        options.dram_bytes = 16 << 20;
        options.seed = 1;
        check(embank_store_open(&options, &mut store), "store_open");
    }
    store
}

/// The table of the checkpoint, or, in a new store, a new one.
fn open_table(store: *mut c_void) -> Table {
    let name = CString::new("items").expect("a name without a zero byte");
    let mut table = null_mut();
    unsafe {
        let mut status = embank_table_open(store, name.as_ptr(), &mut table);
        if status == NOT_FOUND {
            let mut options: TableOptions = std::mem::zeroed();
            embank_table_options_init(&mut options, std::mem::size_of::<TableOptions>() as u32);
            options.dim = DIM as u32;
            options.optimizer = OPT_ADAGRAD;
            options.learning_rate = 0.1;
            options.initializer = INIT_UNIFORM;
            options.init_a = -0.5;
            options.init_b = 0.5;
            status = embank_table_create(store, name.as_ptr(), &options, &mut table);
        }
        check(status, "table");
    }
    Table(table)
}

/// How many batches the checkpoint has: its blob. It belongs to the rows, whatever happens.
fn position_of(store: *mut c_void) -> u64 {
    let (mut blob, mut needed) = ([0u8; 8], 0u64);
    let status = unsafe { embank_checkpoint_blob(store, blob.as_mut_ptr(), 8, &mut needed) };
    if status != NOT_FOUND {
        check(status, "checkpoint_blob"); // else there is no checkpoint yet
    }
    u64::from_le_bytes(blob)
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.len() != 2 && arguments.len() != 3 {
        eprintln!("usage: {} DIR [STOP]", arguments[0]);
        std::process::exit(2);
    }
    let end = arguments.get(2).map_or(BATCHES, |stop| stop.parse().expect("STOP is a number"));
    let store = open_store(&arguments[1]);
    let table = open_table(store);
    let mut batch = position_of(store);
    println!("resume at batch {batch} of {BATCHES}");
    while batch < end {
        let loss = std::thread::scope(|scope| {
            scope.spawn(|| table.prefetch(batch + 1));
            table.train(batch)
        });
        batch += 1;
        if batch % BATCHES_PER_CHECKPOINT != 0 {
            continue;
        }
        let mut number = 0u64;
        let blob = batch.to_le_bytes();
        check(unsafe { embank_checkpoint(store, blob.as_ptr(), 8, &mut number) }, "checkpoint");
        println!("batch {batch}: loss {loss:.4}, checkpoint {number}");
    }
    table.print_rows();
    check(unsafe { embank_store_close(store) }, "store_close");
}

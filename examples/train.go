// A training loop that can be stopped at any moment and goes on where its last checkpoint was.
//
//	train DIR         trains to the end; called again, it goes on at the last checkpoint
//	train DIR STOP    is interrupted after batch STOP, without a checkpoint
//
// The rows take more memory than the store may use: the others are on disk, and a second thread
// brings those of the next batch up while this one is trained.
package main

// #cgo pkg-config: embank
// #include <embank.h>
// #include <stdlib.h>
import "C"

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"unsafe"
)

const (
	dim                  = 64
	batchKeys            = 2048
	batches              = 100
	batchesPerCheckpoint = 20
)

// The message of a failed call belongs to the thread that made it, so each goroutine that calls
// embank stays on its thread (runtime.LockOSThread).
func check(status C.embank_status, what string) {
	if status == C.EMBANK_OK {
		return
	}
	fmt.Fprintf(os.Stderr, "%s: %s: %s\n", what, C.GoString(C.embank_status_name(status)),
		C.GoString(C.embank_last_error()))
	os.Exit(1)
}

func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
	x = (x ^ (x >> 27)) * 0x94D049BB133111EB
	return x ^ (x >> 31)
}

// The data set: a batch asks for these keys, small ones more often.
func keysOf(batch uint64) []uint64 {
	keys := make([]uint64, batchKeys)
	for i := range keys {
		random := mix(batch*batchKeys+uint64(i)) >> 40
		keys[i] = (random * random) >> 32
	}
	return keys
}

// The model: each value of a row should become this.
func target(key, i uint64) float32 {
	return float32((key*7+i*13)%64)/64 - 0.5
}

func first(keys []uint64) *C.uint64_t { return (*C.uint64_t)(&keys[0]) }

// A hint: rows that it does not bring are read later.
func prefetch(table *C.embank_table, batch uint64, done chan<- struct{}) {
	runtime.LockOSThread()
	check(C.embank_prefetch(table, first(keysOf(batch)), batchKeys), "prefetch")
	done <- struct{}{}
}

// Returns the loss: the mean square of the errors.
func train(table *C.embank_table, batch uint64) float64 {
	keys := keysOf(batch)
	rows := make([]float32, batchKeys*dim)
	check(C.embank_lookup(table, first(keys), batchKeys, C.EMBANK_MISSING_CREATE,
		unsafe.Pointer(&rows[0]), 0, nil), "lookup")
	gradients := make([]float32, len(rows))
	sum := 0.0
	for p := range rows {
		gradients[p] = rows[p] - target(keys[p/dim], uint64(p%dim))
		sum += float64(gradients[p]) * float64(gradients[p])
	}
	check(C.embank_apply_gradients(table, first(keys), batchKeys, (*C.float)(&gradients[0]), 0,
		nil), "apply_gradients")
	return sum / float64(len(rows))
}

func openStore(directory string) *C.embank_store {
	var options C.embank_store_options
	C.embank_store_options_init(&options, C.uint32_t(unsafe.Sizeof(options)))
	path := C.CString(directory)
	defer C.free(unsafe.Pointer(path))
	options.path = path
	options.flags = C.EMBANK_OPEN_CREATE
	options.dram_bytes = 16 << 20
	options.seed = 1
	var store *C.embank_store
	check(C.embank_store_open(&options, &store), "store_open")
	return store
}

// The table of the checkpoint, or, in a new store, a new one.
func openTable(store *C.embank_store) *C.embank_table {
	name := C.CString("items")
	defer C.free(unsafe.Pointer(name))
	var table *C.embank_table
	status := C.embank_table_open(store, name, &table)
	if status == C.EMBANK_NOT_FOUND {
		var options C.embank_table_options
		C.embank_table_options_init(&options, C.uint32_t(unsafe.Sizeof(options)))
		options.dim = dim
		options.optimizer = C.EMBANK_OPT_ADAGRAD
		options.learning_rate = 0.1
		options.initializer = C.EMBANK_INIT_UNIFORM
		options.init_a = -0.5
		options.init_b = 0.5
		status = C.embank_table_create(store, name, &options, &table)
	}
	check(status, "table")
	return table
}

// How many batches the checkpoint has: its blob. It belongs to the rows, whatever happens.
func positionOf(store *C.embank_store) uint64 {
	blob := make([]byte, 8)
	var needed C.uint64_t
	status := C.embank_checkpoint_blob(store, unsafe.Pointer(&blob[0]), 8, &needed)
	if status != C.EMBANK_NOT_FOUND { // else there is no checkpoint yet
		check(status, "checkpoint_blob")
	}
	return binary.LittleEndian.Uint64(blob)
}

func checkpoint(store *C.embank_store, batch uint64) uint64 {
	blob := make([]byte, 8)
	binary.LittleEndian.PutUint64(blob, batch)
	var sequence C.uint64_t
	check(C.embank_checkpoint(store, unsafe.Pointer(&blob[0]), 8, &sequence), "checkpoint")
	return uint64(sequence)
}

func printRows(table *C.embank_table) {
	var info C.embank_table_info
	info.struct_size = C.uint32_t(unsafe.Sizeof(info))
	check(C.embank_table_get_info(table, &info), "table_get_info")
	fmt.Printf("in memory %d rows, on disk alone %d\n", info.rows_dram, info.rows_ssd)
	keys := make([]uint64, batchKeys)
	rows := make([]float32, batchKeys*dim)
	var scan *C.embank_scan
	check(C.embank_scan_open(table, &scan), "scan_open")
	total, checksum := uint64(0), uint64(0)
	for {
		var n C.uint64_t
		check(C.embank_scan_next(scan, first(keys), unsafe.Pointer(&rows[0]), 0, batchKeys, &n),
			"scan_next")
		if n == 0 {
			break
		}
		for r := 0; r < int(n); r++ {
			hash := keys[r]
			for _, value := range rows[r*dim : (r+1)*dim] {
				hash = mix(hash ^ uint64(math.Float32bits(value)))
			}
			checksum += hash // a scan has no order, and a sum needs none
		}
		total += uint64(n)
	}
	C.embank_scan_close(scan)
	fmt.Printf("rows %d, checksum %016x\n", total, checksum)
}

func main() {
	runtime.LockOSThread()
	if len(os.Args) != 2 && len(os.Args) != 3 {
		fmt.Fprintf(os.Stderr, "usage: %s DIR [STOP]\n", os.Args[0])
		os.Exit(2)
	}
	end := uint64(batches)
	if len(os.Args) == 3 {
		stop, err := strconv.ParseUint(os.Args[2], 10, 64)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		end = stop
	}
	store := openStore(os.Args[1])
	table := openTable(store)
	batch := positionOf(store)
	fmt.Printf("resume at batch %d of %d\n", batch, batches)
	done := make(chan struct{})
	for batch < end {
		go prefetch(table, batch+1, done)
		loss := train(table, batch)
		<-done
		batch++
		if batch%batchesPerCheckpoint == 0 {
			fmt.Printf("batch %d: loss %.4f, checkpoint %d\n", batch, loss, checkpoint(store, batch))
		}
	}
	printRows(table)
	check(C.embank_store_close(store), "store_close")
}

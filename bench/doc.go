// Package bench compares ctrlkit with what one would use instead. It is a module of its own so that what is compared with is no
// dependency of the library.
//
//	make bench
//
// Figures are ratios within one run, or allocations: machines differ.
package bench

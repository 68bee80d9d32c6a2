//go:build !unix

package sim

import "os"

// abortSignal ends a process.
var abortSignal = os.Kill

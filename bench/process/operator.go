// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/metrics"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ctrlkit/ctrlkit/bench/requests"
)

// Settings are how an operator is run. Its program reads them from its flags.
type Settings struct {
	// Kubeconfig is the file with the address of the API server and the credentials.
	Kubeconfig string
	// Operator is the name of the operator, if the program has more than one.
	Operator string
	// Namespace is the only namespace that is watched.
	Namespace string
	// Workers is how many reconciles run at the same time.
	Workers int
	// Resync is the time after which all Widgets are reconciled again, zero for the default of the
	// library.
	Resync time.Duration
	// Handlers, unless it is zero, has the operator run that many handlers of ConfigMaps, which do
	// nothing, instead of the one of Widgets.
	Handlers int
	// Ring, unless it is empty, is the ring of which the operator is the shard with the name Shard.
	Ring, Shard string
	// Election has the operator wait, with filled caches, until it is the leader of its namespace.
	Election bool
	// System is the address of the external system of an operator of external resources, see package
	// outside; Poll is how often it observes what is up to date.
	System string
	Poll   time.Duration
	// Profiled has the process sample allocations finely enough for a profile of its heap.
	Profiled bool
}

// ParseFlags reads the command line of an operator's program.
func ParseFlags() (Settings, error) {
	var s Settings
	flags := flag.NewFlagSet("operator", flag.ContinueOnError) // controller-runtime adds flags to the standard set
	flags.StringVar(&s.Kubeconfig, "kubeconfig", "", "file with the address of the API server and the credentials")
	flags.StringVar(&s.Operator, "operator", "", "name of the operator")
	flags.StringVar(&s.Namespace, "namespace", "", "the only namespace that is watched")
	flags.IntVar(&s.Workers, "workers", 1, "how many reconciles run at the same time")
	flags.DurationVar(&s.Resync, "resync", 0, "time after which all Widgets are reconciled again")
	flags.IntVar(&s.Handlers, "handlers", 0, "how many handlers of ConfigMaps, which do nothing, run instead of the one of Widgets")
	flags.StringVar(&s.Ring, "ring", "", "the ring of replicas that share the objects")
	flags.StringVar(&s.Shard, "shard", "", "the name of the replica in the ring")
	flags.BoolVar(&s.Election, "election", false, "wait, with filled caches, until this process is the leader")
	flags.StringVar(&s.System, "system", "", "address of the external system")
	flags.DurationVar(&s.Poll, "poll", 0, "how often an external resource that is up to date is observed")
	flags.BoolVar(&s.Profiled, "profiled", false, "sample allocations finely, for a profile of the heap")
	err := flags.Parse(os.Args[1:])
	if s.Profiled {
		runtime.MemProfileRate = 1 << 10
	}
	return s, err
}

// arguments returns the flags of s.
func (s *Settings) arguments() []string {
	return []string{
		"-kubeconfig", s.Kubeconfig, "-operator", s.Operator, "-namespace", s.Namespace,
		"-workers", fmt.Sprint(s.Workers), "-resync", s.Resync.String(), "-handlers", fmt.Sprint(s.Handlers),
		"-system", s.System, "-poll", s.Poll.String(), "-ring", s.Ring, "-shard", s.Shard, fmt.Sprintf("-election=%t", s.Election), fmt.Sprintf("-profiled=%t", s.Profiled),
	}
}

// Config returns the configuration of the operator's clients. Requests are counted by transport and
// not limited by the client: that would measure the limit.
func (s *Settings) Config(transport *requests.Transport) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS, config.Burst = -1, -1
	config.Wrap(transport.Wrap)
	return config, nil
}

// Stats are what a process has done since it started.
type Stats struct {
	// Reconciles are all that have ended.
	Reconciles int
	// Errors are the reconciles that ended in an error.
	Errors int
	// Writes are the requests that change something, Gets the live reads of single objects. Lists,
	// which informers begin with, do not count, nor do events and leases.
	Writes, Gets int
	// Conflicts are the writes that were answered with 409.
	Conflicts int
	// Requests are the requests by verb and resource.
	Requests string
	// Quiet is the time since the last request or answer.
	Quiet time.Duration
	// CPU is the time of all threads, in user and system mode.
	CPU time.Duration
	// Allocated is what has been allocated, in bytes.
	Allocated uint64
	// Heap is what is reachable, in bytes, if it was asked for.
	Heap uint64
}

// Sub returns what was done between two Stats. Quiet and Heap are those of s.
func (s Stats) Sub(before Stats) Stats {
	s.Reconciles -= before.Reconciles
	s.Errors -= before.Errors
	s.Writes -= before.Writes
	s.Gets -= before.Gets
	s.Conflicts -= before.Conflicts
	s.CPU -= before.CPU
	s.Allocated -= before.Allocated
	return s
}

// The questions that an operator answers, a line each.
const (
	askStats   = "stats"
	askHeap    = "heap"
	askProfile = "profile " // and a file: CPU profiles are written to it until the next question of its kind
	endProfile = "profile"
	askAllocs  = "allocations " // and a file: the profile of what is allocated is written to it
)

// Serve answers questions until in ends. The caches of the operator are filled. Reconciles returns
// how many reconciles have ended, and how many of them in an error.
func Serve(in io.Reader, out io.Writer, transport *requests.Transport, reconciles func() (all, errors int)) error {
	encoder := json.NewEncoder(out)
	if err := encoder.Encode(Stats{}); err != nil { // it is ready
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if err := profile(lines.Text()); err != nil {
			return err
		}
		stats := Stats{Quiet: transport.Quiet(), Allocated: allocated()}
		stats.Reconciles, stats.Errors = reconciles()
		counts, conflicts := transport.Counts()
		stats.Writes, stats.Conflicts, stats.Requests = requests.Total(counts.Writes), conflicts, counts.String()
		for what, n := range counts.Reads {
			if strings.HasPrefix(what, "GET ") {
				stats.Gets += n
			}
		}
		if lines.Text() == askHeap {
			stats.Heap = heap()
		}
		var err error
		if stats.CPU, err = cpu(); err != nil {
			return err
		}
		if err := encoder.Encode(stats); err != nil {
			return err
		}
	}
	return lines.Err()
}

// profile begins or ends a CPU profile, or writes one of the heap, if a line asks for that.
func profile(line string) error {
	file, begins := strings.CutPrefix(line, askProfile)
	if begins {
		f, err := os.Create(file)
		if err != nil {
			return err
		}
		return pprof.StartCPUProfile(f) // it closes no file, and neither does a process that is killed need to
	}
	if line == endProfile {
		pprof.StopCPUProfile()
	}
	if file, ok := strings.CutPrefix(line, askAllocs); ok {
		f, err := os.Create(file)
		if err != nil {
			return err
		}
		return errors.Join(pprof.Lookup("heap").WriteTo(f, 0), f.Close())
	}
	return nil
}

// heap returns the bytes that are reachable. The second collection frees what had finalizers, and
// what pools kept over the first.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// allocated returns the bytes that the process has allocated on its heap.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func cpu() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("reading the CPU time: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

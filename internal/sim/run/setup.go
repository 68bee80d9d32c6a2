// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/cluster/private"
	"github.com/ctrlkit/ctrlkit/internal/show/localhost"
)

func (r *runner) build(ctx context.Context) (err error) {
	st := r.steps.begin("operator", "building "+r.Package)
	defer st.quit()
	if r.program, err = r.project.Build(ctx, st, r.steps); err != nil {
		return err
	}
	st.done("built " + r.Package)
	return nil
}

// connect connects to the given cluster, and says first which it is.
func (r *runner) connect(ctx context.Context) error {
	target, err := r.Kubeconfig.Load()
	if err != nil {
		return err
	}
	r.steps.remark("writes to", target.String()+", where definitions, samples and what the operator makes of them remain")
	st := r.steps.begin("cluster", "connecting")
	defer st.quit()
	if r.cluster, err = newCluster(target.Config); err != nil {
		return err
	}
	version, err := r.cluster.version()
	if err != nil {
		return interrupted(ctx, err)
	}
	st.done("Kubernetes " + version)
	return nil
}

func (r *runner) install(ctx context.Context) error {
	st := r.steps.begin("definitions", "installing")
	defer st.quit()
	if len(r.definitions) == 0 {
		st.skip("none: no config/crd beside or above the package; --crds names a directory")
		return nil
	}
	names := make([]string, len(r.definitions))
	for i, definition := range r.definitions {
		names[i] = definition.Name
	}
	st.say("installing " + strings.Join(names, ", "))
	if err := r.cluster.installDefinitions(ctx, r.definitions); err != nil {
		return err
	}
	st.done(strings.Join(names, ", "))
	return nil
}

func (r *runner) watch(ctx context.Context, running *sync.WaitGroup) error {
	for _, name := range r.Watch {
		kind, err := r.cluster.resolve(name)
		if err != nil {
			return err
		}
		r.addTopKind(kind)
	}
	changes := make(chan Change)
	running.Go(func() {
		for {
			select {
			case change := <-changes:
				r.queue.put(item{change: &change})
			case <-ctx.Done():
				return
			}
		}
	})
	w := &watcher{cluster: r.cluster, changes: changes, reportError: func(kind Kind, err error) {
		r.queue.put(item{source: "watch", line: fmt.Sprintf("%s: %v", kind.Plural, err)})
	}}
	return w.start(ctx, r.kinds, running)
}

// addTopKind puts a kind at the top of the tree. It may be watched already.
func (r *runner) addTopKind(kind Kind) {
	for i := range r.kinds {
		if r.kinds[i].GroupKind() == kind.GroupKind() {
			r.kinds[i].Operators = true
			return
		}
	}
	r.kinds = append(r.kinds, kind)
}

func (r *runner) startOperator() error {
	environment := append(withoutWebhooks(r.plane, r.project, r.steps), localhost.SocketVariable+"="+r.socket.path)
	st := r.steps.begin("operator", "starting")
	defer st.quit()
	if r.LogFile != "" {
		var err error
		if r.logFile, err = private.Create(r.LogFile); err != nil {
			return fmt.Errorf("creating the operator's log file: %w", err)
		}
	}
	log := &logTail{pass: r.passLog}
	var kubeconfig string
	switch {
	case r.account != nil:
		kubeconfig = r.account.kubeconfig
	case r.plane != nil:
		kubeconfig = r.plane.Kubeconfig()
	default:
		var err error
		if kubeconfig, r.removeKubeconfig, err = r.Kubeconfig.forOperator(); err != nil {
			return err
		}
	}
	operator, err := startOperator(r.Supervisor, append([]string{r.program}, r.Args...), append(environment, "KUBECONFIG="+kubeconfig), log)
	if err != nil {
		return err
	}
	r.operator, r.start = operator, time.Now()
	started := "started"
	if r.LogFile != "" {
		started += "; its log is in " + r.LogFile
	}
	st.done(started)
	return nil
}

// passLog writes a line of the operator's log to the display and to the file, as the options
// demand.
func (r *runner) passLog(text string) {
	if r.Logs {
		r.queue.put(item{source: "operator", line: text})
	}
	if r.logFile != nil {
		fmt.Fprintln(r.logFile, text)
	}
}

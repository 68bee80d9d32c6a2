// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/ctrlkit/ctrlkit/internal/cluster/definitions"
)

// Options are the options of [Start]. The zero value asks for etcd and
// kube-apiserver alone.
type Options struct {
	// Parts are the optional parts to start.
	Parts Parts

	// Nodes is how many Nodes there are if Parts has [PartNodes]; zero means one.
	Nodes int

	// CRDs are files and directories with CustomResourceDefinitions to install before the
	// controller manager starts. Its garbage collector then knows their kinds from the beginning;
	// it discovers kinds that are installed later within half a minute.
	CRDs []string

	// Assets are the programs. If they are not set, [FindAssets] finds or builds them.
	Assets Assets

	// Flags are additional command line flags of the programs, by the
	// program's name, such as "kube-apiserver": {"--feature-gates=X=true"}. They
	// come last and so override those that this package sets.
	Flags map[string][]string

	// LogDir is the directory for the logs of the processes, one file each, which remain there. It is
	// created if it does not exist. If it is empty, logs are removed with the control plane.
	LogDir string

	// Progress, if not nil, receives the progress of a build; see [BuildOptions].
	Progress io.Writer
}

// A ControlPlane is a running Kubernetes control plane. Its methods may be
// called concurrently.
type ControlPlane struct {
	options   Options
	dir       directory // removed by Stop
	logDir    string
	authority *authority
	port      *reservedPort
	host      string // of the API server
	admin     *rest.Config

	ready      chan struct{}  // closed when all parts are ready
	done       chan struct{}  // closed when a process has ended
	completing sync.WaitGroup // of an early start, what still builds and starts

	mu        sync.Mutex // guards what follows
	processes []*process
	reserved  []*reservedPort
	err       error // why a process ended before Stop
	stopping  bool

	stop func() error // runs once
}

func (c *ControlPlane) installCRDs(ctx context.Context) error {
	crds, err := definitions.Read(c.options.CRDs...)
	if err != nil {
		return err
	}
	cluster, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		return err
	}
	if err := definitions.Install(ctx, cluster, crds); err != nil {
		return err
	}
	return awaitKinds(ctx, c.Config(), crds)
}

// awaitKinds waits until discovery lists the installed kinds. That is later than when they are
// served.
func awaitKinds(ctx context.Context, config *rest.Config, crds []*apiextensionsv1.CustomResourceDefinition) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
		groups, err := restmapper.GetAPIGroupResources(client)
		if err != nil {
			return false, nil //nolint:nilerr // the API server is still starting; ctx bounds the wait
		}
		mapper := restmapper.NewDiscoveryRESTMapper(groups)
		for _, crd := range crds {
			for _, version := range crd.Spec.Versions {
				kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
				if _, err := mapper.RESTMapping(kind, version.Name); err != nil && version.Served {
					return false, nil //nolint:nilerr // not yet
				}
			}
		}
		return true, nil
	})
}

// prepare writes the files that the programs read.
func (c *ControlPlane) prepare() error {
	var err error
	if c.dir, err = newDirectory(); err != nil {
		return err
	}
	if c.logDir = c.options.LogDir; c.logDir == "" {
		c.logDir = string(c.dir)
	}
	if c.authority, err = newAuthority(); err != nil {
		return err
	}
	if c.port, err = c.reservePort(); err != nil {
		return err
	}
	c.host = fmt.Sprintf("https://127.0.0.1:%d", c.port.number)
	serving, err := c.authority.issueServing()
	if err != nil {
		return err
	}
	serviceAccounts, err := newKey()
	if err != nil {
		return err
	}
	serviceAccountKey, err := encodeKey(serviceAccounts)
	if err != nil {
		return err
	}
	if c.admin, err = c.AddUser("admin", "system:masters"); err != nil {
		return err
	}
	kubeconfig, err := kubeconfigOf(c.admin)
	if err != nil {
		return err
	}
	return c.dir.write(map[string][]byte{
		authorityFile:         c.authority.bundle(),
		servingFile:           serving.certificate,
		servingKeyFile:        serving.key,
		serviceAccountKeyFile: serviceAccountKey,
		kubeconfigFile:        kubeconfig,
		stagesFile:            stages,
	})
}

// reservePort reserves a port that is released when the control plane stops.
func (c *ControlPlane) reservePort() (*reservedPort, error) {
	port, err := reservePort()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reserved = append(c.reserved, port)
	return port, nil
}

// run starts a program and records when it ends.
func (c *ControlPlane) run(name string, args []string) error {
	args = append(args, c.options.Flags[name]...)
	environment := append(orphanEnvironment(c.dir), "KWOK_WORKDIR="+string(c.dir)) // not the configuration of the user's own kwok
	p, err := startProcess(c.options.Assets.Program(name), c.logDir, args, environment)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.processes = append(c.processes, p)
	c.mu.Unlock()
	go func() {
		<-p.ended
		c.fail(p.failure)
	}()
	return nil
}

func (c *ControlPlane) fail(why func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping || c.err != nil {
		return
	}
	c.err = why()
	close(c.done)
}

// Ready returns a channel that is closed when all parts are ready. It is open only after
// [StartEarly].
func (c *ControlPlane) Ready() <-chan struct{} {
	return c.ready
}

// Done returns a channel that is closed when the control plane is stopped, when one of its
// processes has ended by itself, or when what [StartEarly] has left has failed.
func (c *ControlPlane) Done() <-chan struct{} {
	return c.done
}

// Err returns nil while all processes run, and after Stop. If a process has ended by itself, the
// error names the first such process, how it ended, and the last lines of its log. If it was not
// possible to build or to start what [StartEarly] has left, the error says why.
func (c *ControlPlane) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Stop ends a build that [StartEarly] has begun, kills all processes, waits until they have ended,
// and removes the files and data of the control plane. Later calls return the result of the first.
func (c *ControlPlane) Stop() error {
	return c.stop()
}

func (c *ControlPlane) stopAll() error {
	c.mu.Lock()
	c.stopping = true
	if c.err == nil {
		close(c.done)
	}
	c.mu.Unlock()
	c.completing.Wait() // it starts processes, and ends with done
	c.mu.Lock()
	processes, reserved := c.processes, c.reserved
	c.mu.Unlock()
	errs := make([]error, len(processes))
	var group sync.WaitGroup
	for i, p := range processes {
		group.Go(func() { errs[i] = p.kill() })
	}
	group.Wait()
	for _, port := range reserved {
		errs = append(errs, port.release())
	}
	return errors.Join(append(errs, c.dir.remove())...)
}

// Assets returns the programs that the control plane runs. Before it is [ControlPlane.Ready], some
// may be missing, such as kubectl.
func (c *ControlPlane) Assets() Assets {
	return c.options.Assets
}

// Parts returns the optional parts that run when the control plane is [ControlPlane.Ready].
func (c *ControlPlane) Parts() Parts {
	return c.options.Parts
}

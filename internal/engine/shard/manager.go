// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/ctrlkit/ctrlkit/internal/cluster/restmapper"
)

// Options are options of [NewManager].
type Options struct {
	// Ring is the name of the ControllerRing.
	Ring string

	// Name is the name of the shard, and of its Lease; by default that of the host.
	Name string

	// Namespace is that of the Lease; by default that of leader election, or of the Pod.
	Namespace string
}

// NewManager returns a manager whose process is a shard of a ring, and the shard: see
// operator.NewShardManager. The manager ends with an error soon after its start if the ring assigns
// objects of a kind that no controller hands over; see [Shard.Claim].
func NewManager(config *rest.Config, options ctrl.Options, of Options) (ctrl.Manager, *Shard, error) {
	mgr, s, err := newManager(config, options, of)
	if err != nil {
		return nil, nil, fmt.Errorf("sharding by the ring %q: %w", of.Ring, err)
	}
	return mgr, s, nil
}

func newManager(config *rest.Config, options ctrl.Options, of Options) (ctrl.Manager, *Shard, error) {
	if options.LeaderElectionResourceLockInterface != nil {
		return nil, nil, errors.New("the manager has a LeaderElectionResourceLockInterface, and a shard has its own: remove that option")
	}
	if options.Scheme == nil {
		options.Scheme = clientgoscheme.Scheme
	}
	if err := of.complete(options.LeaderElectionNamespace); err != nil {
		return nil, nil, err
	}
	s := &Shard{name: of.Name, ring: of.Ring, controllers: map[schema.GroupKind]string{}, handed: map[object]*handover{}}
	mapper, err := mapperOf(config, &options)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.readRing(ctx, config, mapper); err != nil {
		return nil, nil, err
	}
	if err := s.limit(&options.Cache, options.Scheme, mapper); err != nil {
		return nil, nil, err
	}
	leases, err := coordinationclient.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("making a client for its Lease: %w", err)
	}
	logger := options.Logger
	if logger.GetSink() == nil {
		logger = log.Log
	}
	options.LeaderElection, options.LeaderElectionReleaseOnCancel = true, true
	mgr, err := s.tenure.NewManager(config, options, &lease{client: leases.Leases(of.Namespace), shard: s, process: string(uuid.NewUUID()), log: logger.WithName("sharding")})
	if err != nil {
		return nil, nil, err
	}
	return mgr, s, mgr.Add(manager.RunnableFunc(s.refuseUnclaimed))
}

// refuseUnclaimed ends the manager if the ring assigns objects to it that no controller hands over.
func (s *Shard) refuseUnclaimed(context.Context) error {
	if rest := s.unclaimed(); rest != nil {
		return fmt.Errorf("the ring %q assigns objects of %s, which no controller of this process hands over: set the option Shard of its engine or registry, or remove the kind from the ControllerRing",
			s.ring, strings.Join(rest, ", "))
	}
	return nil
}

// complete checks the options, and fills in what is missing.
func (o *Options) complete(namespace string) error {
	var mistakes []error
	if o.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("the name of the host, for the shard: %w: set ShardOptions.Name", err)
		}
		o.Name = host
	}
	for what, name := range map[string]string{"the ring": o.Ring, "the shard": o.Name} {
		if problems := append(validation.IsDNS1123Subdomain(name), validation.IsValidLabelValue(name)...); len(problems) > 0 {
			mistakes = append(mistakes, fmt.Errorf("%q as the name of %s: it is a lowercase DNS name of at most 63 characters", name, what))
		}
	}
	if o.Namespace == "" {
		o.Namespace = namespace
	}
	if o.Namespace == "" {
		inCluster, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
		if err != nil {
			mistakes = append(mistakes, errors.New("no namespace for the Lease of the shard, and the process is in no Pod: set ShardOptions.Namespace"))
		}
		o.Namespace = strings.TrimSpace(string(inCluster))
	}
	return errors.Join(mistakes...)
}

// mapperOf makes the REST mapper of a manager, and has the manager use it.
func mapperOf(config *rest.Config, options *ctrl.Options) (apimeta.RESTMapper, error) {
	provider := options.MapperProvider
	if provider == nil {
		provider = restmapper.New
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the ControllerRing: %w", err)
	}
	mapper, err := provider(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("making a REST mapper: %w", err)
	}
	options.MapperProvider = func(*rest.Config, *http.Client) (apimeta.RESTMapper, error) { return mapper, nil }
	return mapper, nil
}

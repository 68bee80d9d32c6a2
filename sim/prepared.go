// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"net/http"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
)

// The common parts of all runs of a workload are made once.

// preparedDefinitions holds the definitions of workloads, by the first of them: each workload reads
// its own, and does not modify them.
var preparedDefinitions sync.Map

func prepared(crds []*apiextensionsv1.CustomResourceDefinition) *apiserver.Prepared {
	if len(crds) == 0 {
		return apiserver.Prepare()
	}
	p, ok := preparedDefinitions.Load(crds[0])
	if !ok {
		p, _ = preparedDefinitions.LoadOrStore(crds[0], apiserver.Prepare(crds...))
	}
	return p.(*apiserver.Prepared)
}

// mapper is the REST mapper of a process. It asks the server in memory for what is asked most: the
// resource of a kind in one version. controller-runtime's own mapper downloads the discovery
// documents of the server for it at each start, a fifth of the time of a plan. That one answers
// everything else, and what this one does not find, so that errors do not differ.
type mapper struct {
	meta.RESTMapper
	process *Process
}

func newMapper(p *Process) func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	return func(config *rest.Config, client *http.Client) (meta.RESTMapper, error) {
		full, err := apiutil.NewDynamicRESTMapper(config, client)
		if err != nil {
			return nil, err
		}
		return &mapper{full, p}, nil
	}
}

func (m *mapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	// That also holds for a process that was killed, whose requests block: clients of
	// controller-runtime hold a mutex meanwhile, so that nothing would continue.
	if len(versions) == 1 && versions[0] != "" {
		gvk := gk.WithVersion(versions[0])
		if resource, namespaced, err := m.process.run.cluster.Server.ResourceFor(gvk); err == nil {
			scope := meta.RESTScopeRoot
			if namespaced {
				scope = meta.RESTScopeNamespace
			}
			return &meta.RESTMapping{Resource: resource, GroupVersionKind: gvk, Scope: scope}, nil
		}
	}
	return m.RESTMapper.RESTMapping(gk, versions...)
}

// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"

	"github.com/ctrlkit/ctrlkit/internal/cluster/restmapper"
)

// NewRESTMapper returns the REST mapper that a manager has by default, which asks the API server
// for kinds when they are used, with a memory of their mappings. controller-runtime asks for the
// mapping of the owner at each event of an owned object, and for that of the kind at each read from
// a cache that is limited to namespaces; each takes several kilobytes of garbage without the
// memory:
//
//	mgr, err := ctrl.NewManager(config, ctrl.Options{MapperProvider: step.NewRESTMapper})
//
// As with the default, a kind whose resource or scope changes, which needs another definition, is
// noticed after a restart. The error is that of a config that is invalid.
func NewRESTMapper(config *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
	return restmapper.New(config, httpClient)
}

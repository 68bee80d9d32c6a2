// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/ctrlkit/ctrlkit/internal/show/view"
)

// servesPage returns why the operator serves no page, nil if it does. It asks for a part of the
// page that any number of objects makes no slower. An operator that has not answered some time
// after the API server of config, which may be nil, does not answer.
func (f *operatorFlags) servesPage(ctx context.Context, config *rest.Config) error {
	began := time.Now()
	asking, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if config != nil {
		go func() {
			if reach(asking, config) != nil {
				return
			}
			select {
			case <-asking.Done():
			case <-time.After(time.Until(patientUntil(began))):
				cancel(fmt.Errorf("no answer within %v", time.Since(began).Round(100*time.Millisecond)))
			}
		}()
	}
	got, err := f.get(asking, config, view.Path+"page.css", url.Values{}, 5*time.Second)
	switch {
	case err != nil && ctx.Err() == nil && asking.Err() != nil:
		return fmt.Errorf("the operator does not answer at %s: %w", f.at(), context.Cause(asking))
	case err != nil:
		return err
	case got.code == http.StatusNotFound:
		return fmt.Errorf("the operator at %s serves no page: it needs operator.WithPage", f.at())
	}
	return f.refusal(got, view.Path+"*")
}

// reach returns why an API server does not answer, nil if it says its version.
func reach(ctx context.Context, config *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	if err := client.RESTClient().Get().AbsPath("/version").Timeout(reachWithin).Do(ctx).Error(); err != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("asking the API server at %s: %w", config.Host, err)
	}
	return nil
}

// reachWithin is how long an API server may take to say its version.
const reachWithin = 10 * time.Second

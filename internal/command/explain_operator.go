// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/journal"
)

// An operatorQuestion names the object that an operator is asked about.
type operatorQuestion struct {
	kind            string                  // as the user has written it
	gvk             schema.GroupVersionKind // empty if the API server could not be asked
	namespace, name string
}

// report asks the operator. The error says why there is no report, and a remedy. Asked is the shard
// that has answered, if there are shards.
func (f *explainFlags) report(ctx context.Context, config *rest.Config, q operatorQuestion) (r *explanation.Report, asked *explanation.Asked, err error) {
	if f.endpoint == noEndpoint {
		return nil, nil, errors.New("the operator was not asked; set --endpoint to where it serves its metrics")
	}
	object := journal.Object{Group: q.gvk.Group, Kind: q.gvk.Kind, Namespace: q.namespace, Name: q.name}
	if q.gvk.Empty() {
		if object, asked, err = f.known(ctx, config, q); err != nil {
			return nil, asked, err
		}
	}
	query := url.Values{"group": {object.Group}, "kind": {object.Kind}, "namespace": {object.Namespace}, "name": {object.Name}}
	answered, err := f.ask(ctx, config, query)
	asked = explanation.AskedBy(answered.header)
	if err != nil {
		return nil, asked, err
	}
	var report explanation.Report
	if err := f.decode(answered, &report); err != nil {
		return nil, asked, err
	}
	if report.Object.Kind != object.Kind || report.Object.Name != object.Name {
		return nil, asked, fmt.Errorf("what answers at %s is not an operator of this version of ctrlkit: it was asked for %s %s", f.at(), object.Kind, object.Name)
	}
	return &report, asked, nil
}

// known returns the object that the user means, among those that the operator knows.
func (f *explainFlags) known(ctx context.Context, config *rest.Config, q operatorQuestion) (journal.Object, *explanation.Asked, error) {
	answered, err := f.ask(ctx, config, url.Values{})
	asked := explanation.AskedBy(answered.header)
	if err != nil {
		return journal.Object{}, asked, err
	}
	var objects []journal.Object
	if err := f.decode(answered, &objects); err != nil {
		return journal.Object{}, asked, err
	}
	for _, o := range objects {
		if o.Name == q.name && (o.Namespace == q.namespace || o.Namespace == "") && means(q.kind, o) {
			return o, asked, nil
		}
	}
	return journal.Object{}, asked, fmt.Errorf("the operator at %s knows no %s %s%s", f.at(), q.kind,
		strings.TrimPrefix(q.namespace+"/"+q.name, "/"), f.leader(ctx, config, answered.header))
}

// ask sends a question to the operator. The answer has headers also if it is that nothing is known.
func (f *explainFlags) ask(ctx context.Context, config *rest.Config, query url.Values) (answer, error) {
	got, err := f.get(ctx, config, explanation.Path, query, 5*time.Second)
	switch {
	case err != nil:
		return answer{}, err
	case got.code == http.StatusNotFound && !bytes.HasPrefix(got.body, []byte(explanation.Unknown)):
		return answer{}, fmt.Errorf("what answers at %s serves no explanations: an operator needs operator.Observe", f.at())
	case got.code == http.StatusNotFound:
		return got, fmt.Errorf("the operator at %s says: %s%s", f.at(), strings.TrimSpace(string(got.body)), f.leader(ctx, config, got.header))
	}
	return got, f.refusal(got, explanation.Path)
}

// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/ctrlkit/ctrlkit/internal/explanation"
	"github.com/ctrlkit/ctrlkit/journal"
)

// An operatorQuestion names the object that an operator is asked about.
type operatorQuestion struct {
	kind            string                  // as the user has written it
	gvk             schema.GroupVersionKind // empty if the API server could not be asked
	namespace, name string
}

// An answer is the response of an operator.
type answer struct {
	header http.Header
	body   []byte
}

// report asks the operator. The error says why there is no report, and a remedy.
func (f *explainFlags) report(ctx context.Context, config *rest.Config, q operatorQuestion) (*explanation.Report, error) {
	if f.endpoint == noEndpoint {
		return nil, errors.New("the operator was not asked; set --endpoint to where it serves its metrics")
	}
	object := journal.Object{Group: q.gvk.Group, Kind: q.gvk.Kind, Namespace: q.namespace, Name: q.name}
	if q.gvk.Empty() {
		var err error
		if object, err = f.known(ctx, config, q); err != nil {
			return nil, err
		}
	}
	query := url.Values{"group": {object.Group}, "kind": {object.Kind}, "namespace": {object.Namespace}, "name": {object.Name}}
	answered, err := f.ask(ctx, config, query)
	if err != nil {
		return nil, err
	}
	var report explanation.Report
	if err := f.decode(answered, &report); err != nil {
		return nil, err
	}
	if report.Object.Kind != object.Kind || report.Object.Name != object.Name {
		return nil, fmt.Errorf("what answers at %s is not an operator of this version of ctrlkit: it was asked for %s %s", f.endpoint, object.Kind, object.Name)
	}
	return &report, nil
}

// known returns the object that the user means, among those that the operator knows.
func (f *explainFlags) known(ctx context.Context, config *rest.Config, q operatorQuestion) (journal.Object, error) {
	answered, err := f.ask(ctx, config, url.Values{})
	if err != nil {
		return journal.Object{}, err
	}
	var objects []journal.Object
	if err := f.decode(answered, &objects); err != nil {
		return journal.Object{}, err
	}
	for _, o := range objects {
		if o.Name == q.name && (o.Namespace == q.namespace || o.Namespace == "") && means(q.kind, o) {
			return o, nil
		}
	}
	return journal.Object{}, fmt.Errorf("the operator at %s knows no %s %s%s", f.endpoint, q.kind,
		strings.TrimPrefix(q.namespace+"/"+q.name, "/"), f.leader(ctx, config, answered.header))
}

func (f *explainFlags) decode(answered answer, into any) error {
	if err := json.Unmarshal(answered.body, into); err != nil {
		return fmt.Errorf("what answers at %s is not an operator of this version of ctrlkit: %w", f.endpoint, err)
	}
	return nil
}

// ask sends a question to the operator.
func (f *explainFlags) ask(ctx context.Context, config *rest.Config, query url.Values) (answer, error) {
	base, err := url.Parse(f.endpoint)
	if err != nil {
		return answer{}, fmt.Errorf("--endpoint %q: %w", f.endpoint, err)
	}
	base.Path = strings.TrimSuffix(base.Path, "/") + explanation.Path
	base.RawQuery = query.Encode()
	asking, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(asking, http.MethodGet, base.String(), nil)
	if err != nil {
		return answer{}, fmt.Errorf("asking the operator at %s: %w", f.endpoint, err)
	}
	if token := cmp.Or(f.token, config.BearerToken); token != "" && base.Scheme == "https" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: f.insecure, MinVersion: tls.VersionTLS12}, //nolint:gosec // requested by --insecure
	}}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		if detailed := (*url.Error)(nil); errors.As(err, &detailed) {
			err = detailed.Err // without the address, which is in the message below
		}
		return answer{}, fmt.Errorf("the operator does not answer at %s; set --endpoint to where it serves its metrics (%w)", f.endpoint, err)
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	body, err := io.ReadAll(io.LimitReader(response.Body, 16<<20))
	switch {
	case err != nil:
		return answer{}, fmt.Errorf("reading the answer of the operator at %s: %w", f.endpoint, err)
	case response.StatusCode == http.StatusNotFound && !bytes.HasPrefix(body, []byte(explanation.Unknown)):
		return answer{}, fmt.Errorf("what answers at %s serves no explanations: an operator needs explain.Serve", f.endpoint)
	case response.StatusCode == http.StatusNotFound:
		return answer{}, fmt.Errorf("the operator at %s says: %s%s", f.endpoint, strings.TrimSpace(string(body)), f.leader(ctx, config, response.Header))
	case response.StatusCode == http.StatusUnauthorized, response.StatusCode == http.StatusForbidden:
		return answer{}, fmt.Errorf("the operator at %s answers %s: set --token to a token that allows to get %s",
			f.endpoint, response.Status, explanation.Path)
	case response.StatusCode != http.StatusOK:
		text, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
		return answer{}, fmt.Errorf("the operator at %s answers %s: %.200s", f.endpoint, response.Status, text)
	}
	return answer{response.Header, body}, nil
}

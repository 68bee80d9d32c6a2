// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/ctrlkit/ctrlkit/bench/widget"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/step"
)

// A Client calls the system for an operator of package external. The size of a resource is the
// field first of its Widget.
type Client struct {
	url  string
	http *http.Client
}

// NewClient returns a client of the system with an address.
func NewClient(url string) *Client {
	// One connection for each worker: by default, there are two that are kept.
	return &Client{url: url, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}
}

// Connect implements [external.Connector].
func (c *Client) Connect(context.Context, *step.Request[*widget.Widget]) (external.Client[*widget.Widget], error) {
	return c, nil
}

// Observe implements [external.Client].
func (c *Client) Observe(ctx context.Context, w *widget.Widget, id string) (external.Observation, error) {
	status, got, err := c.call(ctx, http.MethodGet, id, nil)
	switch {
	case err != nil:
		return external.Observation{}, err
	case status == http.StatusNotFound:
		return external.Observation{State: external.Absent}, nil
	}
	seen := external.Observation{
		State: external.UpToDate, Owner: got.Owner,
		Connection: map[string][]byte{"address": []byte("outside/" + id), "password": []byte(got.Password)},
	}
	if got.Size != w.Spec.First {
		seen.State, seen.Drift = external.Drifted, []string{"spec.first"}
	}
	return seen, nil
}

// Create implements [external.Client].
func (c *Client) Create(ctx context.Context, w *widget.Widget, creation external.Creation) (string, error) {
	return creation.Name, c.write(ctx, http.MethodPost, creation.Name, w)
}

// Update implements [external.Client].
func (c *Client) Update(ctx context.Context, w *widget.Widget, id string) error {
	return c.write(ctx, http.MethodPut, id, w)
}

// Delete implements [external.Client].
func (c *Client) Delete(ctx context.Context, _ *widget.Widget, id string) error {
	_, _, err := c.call(ctx, http.MethodDelete, id, nil)
	return err
}

func (c *Client) write(ctx context.Context, method, id string, w *widget.Widget) error {
	status, _, err := c.call(ctx, method, id, &Resource{Owner: external.OwnerOf(w), Size: w.Spec.First})
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("the external system answers %d", status)
	}
	return err
}

func (c *Client) call(ctx context.Context, method, id string, send *Resource) (status int, got Resource, err error) {
	var body bytes.Buffer
	if send != nil {
		if err := json.NewEncoder(&body).Encode(send); err != nil {
			return 0, Resource{}, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, c.url+"/"+id, &body)
	if err != nil {
		return 0, Resource{}, err
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return 0, Resource{}, err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	return answer.StatusCode, got, json.NewDecoder(answer.Body).Decode(&got)
}

// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
)

// Times for two that are asked, of which one may be frozen.
const (
	headStart = 300 * time.Millisecond // of the API server, which knows the kind that the operator is asked about
	patience  = 800 * time.Millisecond // with the other one when one has answered; longer if that has taken long
)

// askBoth asks the API server for an object, and the operator about it, each also if the other does
// not answer. Unread is why there is no object, and err why there is no report.
func (f *explainFlags) askBoth(ctx context.Context, config *rest.Config, q operatorQuestion) (
	x *explanation.Explanation, gvk schema.GroupVersionKind, namespace string, unread, err error,
) {
	began := time.Now()
	type object struct {
		x         *explanation.Explanation
		gvk       schema.GroupVersionKind
		namespace string
		err       error
	}
	type answer struct {
		report *explanation.Report
		asked  *explanation.Asked
	}
	read, reported := make(chan object, 1), make(chan answer, 1)
	go func() {
		o := object{x: &explanation.Explanation{Now: began}, namespace: q.namespace}
		o.gvk, o.err = f.readObject(ctx, config, o.x, q.kind, &o.namespace, q.name)
		read <- o
	}()
	guessing, cancel := context.WithCancel(ctx) // by what the operator knows of the kind
	defer cancel()
	guess := time.AfterFunc(headStart, func() {
		report, asked, _ := f.report(guessing, config, q) //nolint:errcheck // the question is asked again with the kind
		reported <- answer{report, asked}
	})
	defer guess.Stop()
	var o object
	select {
	case o = <-read:
	case a := <-reported:
		if a.report == nil { // the API server alone can say something
			o = <-read
			break
		}
		select {
		case o = <-read:
			o.x.Report, o.x.Asked = a.report, a.asked
			return o.x, o.gvk, o.namespace, o.err, nil
		case <-time.After(time.Until(patientUntil(began))):
			unread = fmt.Errorf("the API server at %s has not answered within %v", config.Host, time.Since(began).Round(100*time.Millisecond))
			return &explanation.Explanation{Now: began, Report: a.report, Asked: a.asked}, gvk, q.namespace, unread, nil
		}
	}
	asking, stop := context.WithDeadline(ctx, patientUntil(began))
	defer stop()
	o.x.Report, o.x.Asked, err = f.report(asking, config, operatorQuestion{kind: q.kind, gvk: o.gvk, namespace: o.namespace, name: q.name})
	return o.x, o.gvk, o.namespace, o.err, err
}

// patientUntil returns until when to wait for the other one of two, of which one has answered now:
// over a slow connection, a slow answer is no sign of one that is frozen.
func patientUntil(began time.Time) time.Time {
	return began.Add(max(patience, 3*time.Since(began)))
}

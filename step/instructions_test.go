// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/step"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// run follows instructions, up to the first that does not pass.
func (s *stage) run(ctx context.Context, req *request, instructions string) (err error) {
	for _, instruction := range list(instructions) {
		verb, rest, _ := strings.Cut(instruction, " ")
		if change(req.Object, verb, rest) {
			continue
		}
		switch verb {
		case "again":
			err = ctrlkit.AsError(ctrlkit.RequeueAfter(s.duration(rest)))
		case "continue":
			err = ctrlkit.RequeueWithin(s.duration(rest))
		case "poll":
			err = ctrlkit.Poll(rest, 3*time.Second)
		case "requeue":
			err = ctrlkit.AsError(ctrlkit.RequeueWithBackoff())
		default:
			err = s.try(ctx, req, verb, rest)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// try follows an instruction that either passes or does not.
func (s *stage) try(ctx context.Context, req *request, verb, rest string) error {
	words := append(strings.Fields(rest), "", "", "", "")
	switch verb {
	case "fail":
		return errorOf(rest)
	case "wait":
		return ctrlkit.Wait(rest)
	case "exit":
		return ctrlkit.ErrExit
	case "canceled":
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return fmt.Errorf("asking the bank: %w", ctx.Err())
	case "break":
		s.fault = failOn(rest, errFirst)
	case "panic":
		panic(errorOf(rest))
	case "pass":
		pass(s.duration(rest))
	case "edit", "status", "delete":
		s.outside(verb, strings.ReplaceAll(rest, ",", ";"))
	case "healthy":
		req.Conditions.MarkHealthy(words[0], words[1], strings.Join(words[2:len(words)-4], " "))
	case "unhealthy":
		severities := map[string]condition.Severity{"info": condition.SeverityInfo, "warning": condition.SeverityWarning, "error": condition.SeverityError}
		req.Conditions.MarkUnhealthy(words[0], severities[words[1]], words[2], strings.Join(words[3:len(words)-4], " "))
	case "ignore":
		verb, rest, _ = strings.Cut(rest, " ")
		_ = s.try(ctx, req, verb, rest)
	case "save":
		return req.Save(ctx)
	default:
		return s.request(ctx, req, verb, words)
	}
	return nil
}

// request sends what a step reads and writes itself.
func (s *stage) request(ctx context.Context, req *request, verb string, words []string) error {
	cm := configMap(words[0], nil)
	switch verb {
	case "list":
		return req.Client.List(ctx, &corev1.ConfigMapList{}, client.InNamespace("default"), client.MatchingLabels{"kind": "listed"})
	case "partial":
		partial := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
		return client.IgnoreNotFound(req.Client.Get(ctx, client.ObjectKeyFromObject(cm), partial))
	case "scale":
		return req.Client.SubResource("scale").Get(ctx, cm, cm)
	case "reread":
		return req.Client.Get(ctx, thingRequest.NamespacedName, req.Object)
	case "relive":
		return req.APIReader.Get(ctx, thingRequest.NamespacedName, req.Object)
	case "past":
		return s.client.Status().Update(ctx, req.Object)
	case "update":
		return req.Client.Update(ctx, req.Object)
	case "updateStatus":
		return req.Client.Status().Update(ctx, req.Object)
	case "patch", "patchStatus":
		before := req.Object.DeepCopyObject().(*Thing) //nolint:errcheck // a copy has the type
		change(req.Object, words[0], words[1])
		if verb == "patch" {
			return req.Client.Patch(ctx, req.Object, client.MergeFrom(before))
		}
		return req.Client.Status().Patch(ctx, req.Object, client.MergeFrom(before))
	case "create":
		return client.IgnoreAlreadyExists(req.Client.Create(ctx, cm))
	case "spawn":
		s.spawned++
		return req.Client.Create(ctx, configMap(fmt.Sprint("child-", s.spawned), nil))
	case "drop":
		return client.IgnoreNotFound(req.Client.Delete(ctx, cm))
	case "read":
		for range max(1, number(words[1])) {
			if err := req.Client.Get(ctx, client.ObjectKeyFromObject(cm), cm); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
	case "keep":
		err := req.Client.Get(ctx, client.ObjectKeyFromObject(cm), cm)
		switch {
		case client.IgnoreNotFound(err) != nil || err == nil:
			return err
		case words[1] == "by":
			return req.Client.Apply(ctx, corev1ac.ConfigMap(words[0], "default").WithData(map[string]string{"a": "b"}))
		}
		return req.Client.Create(ctx, cm)
	default:
		s.t.Errorf("what is %q?", verb)
	}
	return nil
}

// changeAll changes an object as others do: "spec 3; label by=them".
func changeAll(t *testing.T, obj *Thing, changes string) {
	t.Helper()
	for _, text := range list(changes) {
		if verb, rest, _ := strings.Cut(text, " "); !change(obj, verb, rest) {
			t.Errorf("what is %q?", text)
		}
	}
}

// change changes an object, and reports whether it can be changed like that.
func change(obj *Thing, verb, rest string) bool {
	key, value, _ := strings.Cut(rest, "=")
	switch verb {
	case "spec":
		obj.Spec.Size = number(rest)
	case "size":
		obj.Status.Size = number(rest)
	case "grow":
		obj.Status.Size++
	case "tick":
		obj.Status.Counters = map[string]int{key: obj.Status.Counters[key] + 1}
	case "phase":
		obj.Status.Phase = rest
	case "count":
		obj.Status.Counters = map[string]int{key: number(value)}
	case "label":
		metav1.SetMetaDataLabel(&obj.ObjectMeta, key, value)
	case "unlabel":
		delete(obj.Labels, rest)
	case "annotate":
		metav1.SetMetaDataAnnotation(&obj.ObjectMeta, key, value)
	case "unannotate":
		delete(obj.Annotations, rest)
	case "finalizers":
		obj.Finalizers = finalizersOf(rest)
	case "hold":
		obj.Finalizers = append(obj.Finalizers, foreignFinalizer)
	case "owner":
		obj.OwnerReferences = append(obj.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: rest, UID: types.UID(rest)})
	case "uid":
		obj.UID = types.UID(rest)
	case "name":
		obj.GenerateName = rest
	case "generation":
		obj.Generation = int64(number(rest))
	case "deleted":
		obj.DeletionTimestamp = deletedThing().DeletionTimestamp
	case "set":
		meta.SetStatusCondition(&obj.Status.Conditions, metav1.Condition{Type: key, Status: metav1.ConditionStatus(value), Reason: "Because", Message: "it is so"})
	default:
		return false
	}
	return true
}

func thingWith(t *testing.T, changes string) *Thing {
	t.Helper()
	obj := newThing()
	changeAll(t, obj, changes)
	return obj
}

const foreignFinalizer = "other.example.com/hold"

func finalizersOf(text string) []string {
	return strings.Fields(strings.NewReplacer("ours", finalizer, "foreign", foreignFinalizer).Replace(text))
}

func list(text string) []string {
	return slices.DeleteFunc(strings.Split(text, "; "), func(s string) bool { return s == "" })
}

func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

func (s *stage) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	must(s.t, err)
	return d
}

// errorOf is an error of a name, or with this text.
func errorOf(text string) error {
	known := map[string]error{
		"first": errFirst, "second": errSecond, "third": errThird, "conflict": conflictError(), "missing": apierrors.NewNotFound(things, "child"), "forbidden": forbiddenError(),
		"terminal": reconcile.TerminalError(errFirst), "quota": failure.Mark(errFirst, failure.WithReason("Quota")),
		"nothing to claim": fmt.Errorf("a policy: %w", step.ErrNothingToClaim),
	}
	if err, ok := known[text]; ok {
		return err
	}
	return errors.New(text)
}

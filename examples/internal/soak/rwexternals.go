// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	v1 "github.com/ctrlkit/ctrlkit/examples/03_rwexternal/api/v1"
)

const (
	checkOutputs = "outputs"
	checkOrphans = "orphaned Secrets"
	checkForeign = "foreign Secrets touched"
)

// An input is the model of an input Secret. It does not exist if it is zero.
type input struct{ dividend, divisor string }

// An rwExternal is the model of one RWExternal, of the Secret that may have the name of its output
// without being its own, and of the input that has its number. Which input it reads is another
// matter.
type rwExternal struct {
	reads   int    // the number of the input that it reads
	foreign string // what is in a Secret of another owner that has the name of the output; "" if there is none
	own     input  // the input of this number
}

// rwExternals are the RWExternals of examples/03_rwexternal.
type rwExternals struct {
	*population
	model []rwExternal
}

func newRWExternals(user client.WithWatch, o *options) subject {
	r := &rwExternals{population: newPopulation(user, o, "RWExternal", &v1.RWExternalList{})}
	r.details = r
	for i := range o.objects {
		r.model = append(r.model, rwExternal{reads: i, own: r.input()})
	}
	return r
}

func (*rwExternals) checks() []string { return []string{checkOutputs, checkForeign, checkOrphans} }

func (r *rwExternals) renew(i int) { r.model[i].reads = r.random.IntN(len(r.model)) }

// input returns an input that can be divided mostly, and sometimes not.
func (r *rwExternals) input() input {
	in := input{dividend: strconv.Itoa(r.random.IntN(201) - 100), divisor: strconv.Itoa(r.random.IntN(9) + 1)}
	switch r.random.IntN(20) {
	case 0:
		in.divisor = "0"
	case 1:
		in.dividend = "many"
	}
	return in
}

// divide returns what is in the output, or the reason why there is none.
func (in input) divide() (output map[string][]byte, reason string) {
	dividend, err1 := strconv.Atoi(in.dividend)
	divisor, err2 := strconv.Atoi(in.divisor)
	switch {
	case in == input{}:
		return nil, "SecretNotFound"
	case err1 != nil || err2 != nil:
		return nil, "InvalidInput"
	case divisor == 0:
		return nil, "DivisorIsZero"
	}
	return map[string][]byte{"quotient": []byte(strconv.Itoa(dividend / divisor)), "remainder": []byte(strconv.Itoa(dividend % divisor))}, ""
}

func (in input) data() map[string][]byte {
	return map[string][]byte{"dividend": []byte(in.dividend), "divisor": []byte(in.divisor)}
}

// outputName returns where an output is: every second one in another namespace.
func outputName(i int) metav1.ObjectMeta {
	key := name("output", i)
	if i%2 == 1 {
		key.Namespace = outputsNamespace
	}
	return key
}

func (r *rwExternals) object(i int) client.Object {
	output := outputName(i)
	return &v1.RWExternal{ObjectMeta: name("soak", i), Spec: v1.RWExternalSpec{
		InputSecret: name("input", r.model[i].reads).Name, OutputSecret: v1.SecretReference{Namespace: output.Namespace, Name: output.Name},
	}}
}

func (r *rwExternals) prepare(ctx context.Context, i int) error {
	return create(ctx, r.user, &corev1.Secret{ObjectMeta: name("input", i), Data: r.model[i].own.data()})
}

func (r *rwExternals) edit(i int, exists bool, k int) (edit, bool) {
	m := &r.model[i]
	switch {
	case k < 35:
		return r.editInput(i, m), true
	case !exists || k >= 75:
		return edit{}, false
	case k < 45:
		r.renew(i)
		in := name("input", m.reads).Name
		return edit{what: "reads " + in, apply: patching(r.object(i), `{"spec":{"inputSecret":%q}}`, in)}, true
	}
	return r.editOutput(i, m, k), true
}

func (r *rwExternals) editInput(i int, m *rwExternal) edit {
	secret := &corev1.Secret{ObjectMeta: name("input", i)}
	existed := m.own != input{}
	if existed && r.random.IntN(6) == 0 {
		m.own = input{}
		return edit{what: secret.Name + " deleted", apply: deleting(secret)}
	}
	m.own = r.input()
	secret.Data = m.own.data()
	return edit{what: fmt.Sprintf("%s is %v", secret.Name, m.own), apply: func(ctx context.Context, c client.Client) error {
		if existed {
			return c.Update(ctx, secret)
		}
		return c.Create(ctx, secret)
	}}
}

// editOutput deletes or overwrites an output, puts a foreign Secret in its place, or deletes that
// one.
func (*rwExternals) editOutput(i int, m *rwExternal, k int) edit {
	secret := &corev1.Secret{ObjectMeta: outputName(i)}
	// There may be no output at the moment.
	ifThere := func(do func(context.Context, client.Client) error) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error { return client.IgnoreNotFound(do(ctx, c)) }
	}
	switch {
	case m.foreign != "":
		m.foreign = ""
		return edit{what: secret.Name + " (foreign) deleted", apply: deleting(secret)}
	case k < 57:
		return edit{what: secret.Name + " deleted", apply: ifThere(deleting(secret))}
	case k < 69:
		return edit{what: secret.Name + " overwritten", apply: ifThere(patching(secret, `{"data":{"quotient":"d3Jvbmc="}}`))}
	}
	m.foreign = strconv.Itoa(k)
	secret.Data = map[string][]byte{"foreign": []byte(m.foreign)}
	return edit{what: secret.Name + " replaced with a foreign one", apply: func(ctx context.Context, c client.Client) error { return replace(ctx, c, secret) }}
}

// replace replaces the Secret of that name, if there is one. It retries, because the operator may
// write between the deletion and the creation.
func replace(ctx context.Context, c client.Client, foreign *corev1.Secret) error {
	for {
		err := c.Update(ctx, foreign.DeepCopy())
		if apierrors.IsNotFound(err) {
			err = c.Create(ctx, foreign.DeepCopy())
		}
		if !apierrors.IsAlreadyExists(err) || ctx.Err() != nil {
			return err
		}
	}
}

// want returns what Ready of an RWExternal should be. Problems of the input take precedence over
// those of the output.
func (r *rwExternals) want(i int) readiness {
	m := r.model[i]
	_, reason := r.model[m.reads].own.divide()
	if reason == "" && m.foreign != "" {
		reason = apply.ReasonOwnedByAnother
	}
	return readiness{ready: reason == "", reason: reason}
}

func (r *rwExternals) problem(_ int, obj client.Object) string {
	got := obj.(*v1.RWExternal) //nolint:errcheck // nothing else is listed
	if got.Status.ObservedGeneration != got.Generation {
		return fmt.Sprintf("the status is about generation %d, want %d", got.Status.ObservedGeneration, got.Generation)
	}
	return ""
}

// check compares all Secrets with the model. What the model does not have is an orphan.
func (r *rwExternals) check(ctx context.Context, d *population, found *checks) error {
	secrets := make(map[client.ObjectKey]*corev1.Secret)
	for _, ns := range []string{namespace, outputsNamespace} {
		var list corev1.SecretList
		if err := r.user.List(ctx, &list, client.InNamespace(ns)); err != nil {
			return fmt.Errorf("listing the Secrets: %w", err)
		}
		for i := range list.Items {
			secrets[client.ObjectKeyFromObject(&list.Items[i])] = &list.Items[i]
		}
	}
	claim := func(meta metav1.ObjectMeta) *corev1.Secret {
		key := client.ObjectKey{Namespace: meta.Namespace, Name: meta.Name}
		secret := secrets[key]
		delete(secrets, key)
		return secret
	}
	for i, m := range r.model {
		if m.own != (input{}) {
			if secret := claim(name("input", i)); secret == nil || !maps.EqualFunc(secret.Data, m.own.data(), slices.Equal) {
				d.found(found, checkForeign, i, "input-%02d should be %v, and is not: the operator must not change it", i, m.own)
			}
		}
		switch {
		case m.foreign != "":
			secret := claim(outputName(i))
			if secret == nil || string(secret.Data["foreign"]) != m.foreign || len(secret.Data) != 1 || len(secret.Annotations) != 0 {
				d.found(found, checkForeign, i, "%s is foreign, and it was changed or deleted", outputName(i).Name)
			}
		case d.lanes[i].exists:
			r.checkOutput(found, i, claim(outputName(i)))
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(secrets), func(a, b client.ObjectKey) int { return cmp.Compare(a.String(), b.String()) }) {
		v := leftover(secrets[key])
		v.evidence += fmt.Sprintf("; its annotation %s is %q", apply.OwnerAnnotation, secrets[key].Annotations[apply.OwnerAnnotation])
		found.add(checkOrphans, v)
	}
	return nil
}

// ownerOf is the value of apply.OwnerAnnotation of an output, which names its RWExternal.
func ownerOf(i int) string {
	return "RWExternal.demo.ctrlkit.dev " + namespace + "/" + name("soak", i).Name
}

// checkOutput checks the output of an RWExternal that exists. What was written from an earlier input
// may stay if the present one can't be divided.
func (r *rwExternals) checkOutput(found *checks, i int, secret *corev1.Secret) {
	in := r.model[r.model[i].reads].own
	want, reason := in.divide()
	switch {
	case secret == nil && reason == "":
		r.found(found, checkOutputs, i, "%s does not exist, want %q of %v", outputName(i).Name, want, in)
	case secret == nil:
	case secret.Annotations[apply.OwnerAnnotation] != ownerOf(i):
		r.found(found, checkOutputs, i, "%s names the owner %q, want %q", secret.Name, secret.Annotations[apply.OwnerAnnotation], ownerOf(i))
	case reason == "" && !maps.EqualFunc(secret.Data, want, slices.Equal):
		r.found(found, checkOutputs, i, "%s has %q, want %q of %v", secret.Name, secret.Data, want, in)
	}
}

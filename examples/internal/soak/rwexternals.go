// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	v1 "github.com/ctrlkit/ctrlkit/examples/03_rwexternal/api/v1"
)

// ownerOf is the value of apply.OwnerAnnotation of an output, which names its RWExternal.
func ownerOf(name string) string { return "RWExternal.demo.ctrlkit.dev " + namespace + "/" + name }

// An input is the model of an input Secret.
type input struct {
	exists            bool
	dividend, divisor string
}

// An rwExternal is the model of one RWExternal, of the Secret that may have the name of its output
// without being its own, and of the input that has its number. Which input it reads is another
// matter.
type rwExternal struct {
	exists bool
	input  int // the number of the input that it reads
	label  string

	foreign string // what is in a Secret of another owner that has the name of the output; "" if there is none
	own     input  // the input of this number
}

// rwExternals is the soak of examples/03_rwexternal.
type rwExternals struct {
	user    client.Client
	options *options
	random  *rand.Rand
	model   []rwExternal // what the cluster should be
}

func newRWExternals(user client.WithWatch, o *options) subject {
	r := &rwExternals{user: user, options: o, random: newRandom(o.seed, "edits of RWExternals")}
	for i := range o.objects {
		r.model = append(r.model, rwExternal{exists: true, input: i, own: r.input()})
	}
	return r
}

// input returns an input that can be divided mostly, and sometimes not.
func (r *rwExternals) input() input {
	in := input{exists: true, dividend: strconv.Itoa(r.random.IntN(201) - 100), divisor: strconv.Itoa(r.random.IntN(9) + 1)}
	switch r.random.IntN(20) {
	case 0:
		in.divisor = "0"
	case 1:
		in.dividend = "many"
	}
	return in
}

// quotient returns the result as it is in the output, and whether there is one.
func (in input) quotient() (quotient, remainder string, ok bool) {
	dividend, err := strconv.ParseInt(in.dividend, 10, 64)
	if err != nil {
		return "", "", false
	}
	divisor, err := strconv.ParseInt(in.divisor, 10, 64)
	if err != nil || divisor == 0 {
		return "", "", false
	}
	return strconv.FormatInt(dividend/divisor, 10), strconv.FormatInt(dividend%divisor, 10), true
}

// dividesByZero reports whether both numbers can be read, and still there is no result.
func (in input) dividesByZero() bool {
	_, err1 := strconv.ParseInt(in.dividend, 10, 64)
	divisor, err2 := strconv.ParseInt(in.divisor, 10, 64)
	return err1 == nil && err2 == nil && divisor == 0
}

func (in input) String() string {
	if !in.exists {
		return "missing"
	}
	return in.dividend + "/" + in.divisor
}

func (in input) data() map[string][]byte {
	return map[string][]byte{"dividend": []byte(in.dividend), "divisor": []byte(in.divisor)}
}

func (r *rwExternals) name(i int) string { return fmt.Sprintf("soak-%02d", i) }

func inputName(i int) string { return fmt.Sprintf("input-%02d", i) }

func (r *rwExternals) inputKey(i int) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: inputName(i)}
}

// outputKey returns where an output is: every second one in another namespace.
func (r *rwExternals) outputKey(i int) metav1.ObjectMeta {
	key := metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("output-%02d", i)}
	if i%2 == 1 {
		key.Namespace = outputsNamespace
	}
	return key
}

func (r *rwExternals) object(i int) *v1.RWExternal {
	output := r.outputKey(i)
	return &v1.RWExternal{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: r.name(i)}, Spec: v1.RWExternalSpec{
		InputSecret: inputName(r.model[i].input), OutputSecret: v1.SecretReference{Namespace: output.Namespace, Name: output.Name},
	}}
}

func (r *rwExternals) create(ctx context.Context) error {
	for i := range r.model {
		if err := create(ctx, r.user, &corev1.Secret{ObjectMeta: r.inputKey(i), Data: r.model[i].own.data()}); err != nil {
			return fmt.Errorf("creating Secret %s: %w", inputName(i), err)
		}
		if err := create(ctx, r.user, r.object(i)); err != nil {
			return fmt.Errorf("creating RWExternal %s: %w", r.name(i), err)
		}
	}
	return nil
}

func (r *rwExternals) progress() string { return fmt.Sprintf("%d RWExternals", len(r.model)) }

func (r *rwExternals) edits() []edit {
	return planEdits(r.random, len(r.model), r.options.chaos, r.options.edits, r.next)
}

// next plans an edit of an RWExternal, of the input of its number, or of its output.
func (r *rwExternals) next(i int) edit {
	m := &r.model[i]
	switch k := r.random.IntN(100); {
	case k < 35:
		return r.editInput(i, m)
	case !m.exists:
		m.exists, m.input, m.label = true, r.random.IntN(len(r.model)), ""
		obj := r.object(i)
		return edit{what: "created again, with " + obj.Spec.InputSecret, apply: func(ctx context.Context, c client.Client) error {
			return create(ctx, c, obj)
		}}
	case k < 45:
		m.input = r.random.IntN(len(r.model))
		return edit{what: "reads " + inputName(m.input), apply: r.patch(i, `{"spec":{"inputSecret":%q}}`, inputName(m.input))}
	case k < 55:
		m.label = strconv.Itoa(r.random.IntN(1000))
		return edit{what: "label changed to " + m.label, apply: r.patch(i, `{"metadata":{"labels":{%q:%q}}}`, coWriter, m.label)}
	case k < 85:
		return r.editOutput(i, m, k)
	default:
		m.exists = false
		obj := &v1.RWExternal{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: r.name(i)}}
		return edit{what: "deleted", apply: func(ctx context.Context, c client.Client) error { return c.Delete(ctx, obj) }}
	}
}

func (r *rwExternals) patch(i int, format string, args ...any) func(context.Context, client.Client) error {
	obj, patch := &v1.RWExternal{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: r.name(i)}}, fmt.Appendf(nil, format, args...)
	return func(ctx context.Context, c client.Client) error {
		return c.Patch(ctx, obj.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	}
}

func (r *rwExternals) editInput(i int, m *rwExternal) edit {
	key, name := r.inputKey(i), inputName(i)
	if m.own.exists && r.random.IntN(6) == 0 {
		m.own = input{}
		return edit{what: name + " deleted", apply: func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, &corev1.Secret{ObjectMeta: key})
		}}
	}
	existed := m.own.exists
	m.own = r.input()
	secret := &corev1.Secret{ObjectMeta: key, Data: m.own.data()}
	if !existed {
		return edit{what: name + " created, " + m.own.String(), apply: func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, secret.DeepCopy())
		}}
	}
	return edit{what: name + " changed to " + m.own.String(), apply: func(ctx context.Context, c client.Client) error {
		return c.Update(ctx, secret.DeepCopy())
	}}
}

// editOutput deletes or overwrites an output, puts a foreign Secret in its place, or deletes that
// one.
func (r *rwExternals) editOutput(i int, m *rwExternal, k int) edit {
	secret := &corev1.Secret{ObjectMeta: r.outputKey(i)}
	switch {
	case m.foreign != "":
		m.foreign = ""
		return edit{what: secret.Name + " (foreign) deleted", apply: func(ctx context.Context, c client.Client) error {
			return c.Delete(ctx, secret)
		}}
	case k < 67:
		// There may be none at the moment.
		return edit{what: secret.Name + " deleted", apply: func(ctx context.Context, c client.Client) error {
			return client.IgnoreNotFound(c.Delete(ctx, secret))
		}}
	case k < 79:
		patch := []byte(`{"data":{"quotient":"d3Jvbmc="}}`)
		return edit{what: secret.Name + " overwritten", apply: func(ctx context.Context, c client.Client) error {
			return client.IgnoreNotFound(c.Patch(ctx, secret, client.RawPatch(types.MergePatchType, patch)))
		}}
	default:
		m.foreign = strconv.Itoa(1 + r.random.IntN(1000))
		foreign := &corev1.Secret{ObjectMeta: secret.ObjectMeta, Data: map[string][]byte{"foreign": []byte(m.foreign)}}
		return edit{what: secret.Name + " replaced with a foreign one", apply: func(ctx context.Context, c client.Client) error {
			return replace(ctx, c, foreign)
		}}
	}
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

func (r *rwExternals) compare(ctx context.Context, steadySince time.Time) ([]check, error) {
	var owners v1.RWExternalList
	if err := r.user.List(ctx, &owners, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the RWExternals: %w", err)
	}
	secrets, err := r.secrets(ctx)
	if err != nil {
		return nil, err
	}
	return r.compareWith(owners.Items, secrets, steadySince), nil
}

func (r *rwExternals) secrets(ctx context.Context) ([]corev1.Secret, error) {
	var all []corev1.Secret
	for _, ns := range []string{namespace, outputsNamespace} {
		var secrets corev1.SecretList
		if err := r.user.List(ctx, &secrets, client.InNamespace(ns)); err != nil {
			return nil, fmt.Errorf("listing the Secrets: %w", err)
		}
		all = append(all, secrets.Items...)
	}
	return all, nil
}

// want returns what Ready of an RWExternal should be. Problems of the input take precedence over
// those of the output.
func (r *rwExternals) want(m rwExternal) readiness {
	in := r.model[m.input].own
	_, _, valid := in.quotient()
	switch {
	case !in.exists:
		return readiness{reason: "SecretNotFound"}
	case in.dividesByZero():
		return readiness{reason: "DivisorIsZero"}
	case !valid:
		return readiness{reason: "InvalidInput"}
	case m.foreign != "":
		return readiness{reason: apply.ReasonOwnedByAnother}
	}
	return readiness{ready: true}
}

// A comparison of RWExternals and Secrets with the model.
type comparison struct {
	*rwExternals
	owners  map[string]*v1.RWExternal
	secrets map[client.ObjectKey]*corev1.Secret

	existence, outputs, foreign, orphans, ready, labels check
}

func (r *rwExternals) compareWith(owners []v1.RWExternal, secrets []corev1.Secret, steadySince time.Time) []check {
	c := &comparison{
		rwExternals: r, owners: make(map[string]*v1.RWExternal), secrets: make(map[client.ObjectKey]*corev1.Secret),
		existence: check{name: "missing or superfluous objects"}, outputs: check{name: "outputs"}, orphans: check{name: "orphaned Secrets"},
		foreign: check{name: "foreign Secrets touched"}, ready: check{name: "Ready"}, labels: check{name: "labels of a co-writer"},
	}
	for i := range owners {
		c.owners[owners[i].Name] = &owners[i]
	}
	for i := range secrets {
		c.secrets[client.ObjectKeyFromObject(&secrets[i])] = &secrets[i]
	}
	existing, divided := 0, 0
	for i, m := range r.model {
		if m.exists {
			existing++
			if r.want(m).ready {
				divided++
			}
		}
		c.compareOwner(i, m, steadySince)
		c.compareSecrets(i, m)
	}
	for _, name := range slices.Sorted(maps.Keys(c.owners)) {
		c.existence.violations = append(c.existence.violations, leftover(c.owners[name]))
	}
	for _, key := range slices.SortedFunc(maps.Keys(c.secrets), compareKeys) {
		secret := c.secrets[key]
		v := leftover(secret)
		v.evidence += fmt.Sprintf("; its annotation %s is %q", apply.OwnerAnnotation, secret.Annotations[apply.OwnerAnnotation])
		c.orphans.violations = append(c.orphans.violations, v)
	}
	c.ready.seen = fmt.Sprintf("%d wrong; True %d of %d, else False for the right reason", len(c.ready.violations), divided, existing)
	c.outputs.seen = fmt.Sprintf("%d wrong, of %d", len(c.outputs.violations), divided)
	return []check{c.existence, c.outputs, c.foreign, c.orphans, c.ready, c.labels}
}

func compareKeys(a, b client.ObjectKey) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func (c *comparison) found(to *check, i int, format string, args ...any) {
	to.violations = append(to.violations, violation{object: "RWExternal " + c.name(i), lane: i, evidence: fmt.Sprintf(format, args...)})
}

func (c *comparison) compareOwner(i int, m rwExternal, steadySince time.Time) {
	obj := c.owners[c.name(i)]
	delete(c.owners, c.name(i))
	switch {
	case obj == nil && m.exists:
		c.found(&c.existence, i, "it does not exist, want that it reads %s", inputName(m.input))
		return
	case obj != nil && (!m.exists || obj.DeletionTimestamp != nil):
		c.found(&c.existence, i, "%s", leftover(obj).evidence)
		return
	case obj == nil:
		return
	}
	if problem := c.want(m).problem(obj.Status.Conditions, obj.Generation, steadySince); problem != "" {
		c.found(&c.ready, i, "%s (it reads %s: %s)", problem, inputName(m.input), c.model[m.input].own)
	} else if obj.Status.ObservedGeneration != obj.Generation {
		c.found(&c.ready, i, "the status is about generation %d, want %d", obj.Status.ObservedGeneration, obj.Generation)
	}
	if got := obj.Labels[coWriter]; got != m.label {
		c.found(&c.labels, i, "label %s is %q, want %q", coWriter, got, m.label)
	}
}

// claim returns the Secret with a name, if there is one. What is never claimed is an orphan.
func (c *comparison) claim(meta metav1.ObjectMeta) *corev1.Secret {
	key := client.ObjectKey{Namespace: meta.Namespace, Name: meta.Name}
	secret := c.secrets[key]
	delete(c.secrets, key)
	return secret
}

func (c *comparison) compareSecrets(i int, m rwExternal) {
	if m.own.exists {
		if secret := c.claim(c.inputKey(i)); secret == nil || !maps.EqualFunc(secret.Data, m.own.data(), equal) {
			c.found(&c.foreign, i, "%s should be %s, and is not: the operator must not change it", inputName(i), m.own)
		}
	}
	if m.foreign != "" {
		secret := c.claim(c.outputKey(i))
		if secret == nil || string(secret.Data["foreign"]) != m.foreign || len(secret.Data) != 1 || len(secret.Annotations) != 0 {
			c.found(&c.foreign, i, "%s is foreign, and it was changed or deleted", c.outputKey(i).Name)
		}
		return
	}
	if !m.exists {
		return // an output that is there all the same is an orphan
	}
	secret := c.claim(c.outputKey(i))
	if owner := ownerOf(c.name(i)); secret != nil && secret.Annotations[apply.OwnerAnnotation] != owner {
		c.found(&c.outputs, i, "%s names the owner %q, want %q", secret.Name, secret.Annotations[apply.OwnerAnnotation], owner)
		return
	}
	in := c.model[m.input].own
	quotient, remainder, ok := in.quotient()
	if !ok {
		return // what was written from an earlier input, if anything, may stay
	}
	if secret == nil {
		c.found(&c.outputs, i, "%s does not exist, want quotient %s and remainder %s of %s", c.outputKey(i).Name, quotient, remainder, in)
		return
	}
	if !maps.EqualFunc(secret.Data, map[string][]byte{"quotient": []byte(quotient), "remainder": []byte(remainder)}, equal) {
		c.found(&c.outputs, i, "%s has %q, want quotient %s and remainder %s of %s", secret.Name, secret.Data, quotient, remainder, in)
	}
}

func equal(a, b []byte) bool { return string(a) == string(b) }

// deleteAll deletes the RWExternals. Inputs and foreign Secrets stay.
func (r *rwExternals) deleteAll(ctx context.Context) error {
	for i := range r.model {
		r.model[i].exists = false
	}
	if err := r.user.DeleteAllOf(ctx, &v1.RWExternal{}, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("deleting the RWExternals: %w", err)
	}
	return nil
}

// remaining returns what differs from a cluster without RWExternals.
func (r *rwExternals) remaining(ctx context.Context) ([]violation, error) {
	checks, err := r.compare(ctx, time.Time{})
	var found []violation
	for _, c := range checks {
		found = append(found, c.violations...)
	}
	return found, err
}

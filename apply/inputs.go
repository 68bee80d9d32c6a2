// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// inputsAnnotation is the annotation of a Pod template that [RestartOn] writes.
const inputsAnnotation = "apply.ctrlkit.dev/inputs"

// RestartOn has the Pods of a Deployment, or of another object with a Pod template, replaced when the
// content of other objects changes: of ConfigMaps and Secrets that they mount or have in their
// environment. Inputs are what the step has read through its request, so that a change of them
// reconciles the owner. A nil one is an input that is not there.
//
// Its hash is in the annotation [inputsAnnotation] of the Pod template. It is made of data, or of spec for
// kinds without data, and of nothing else: an input that is created again with the same content replaces
// no Pods. Who may read the Deployment can test guesses of the content with it.
func RestartOn(inputs ...client.Object) Option { return restartOn(inputs) }

type restartOn []client.Object

func (r restartOn) apply(to *policy) { to.inputs = append(to.inputs, r...) }

// addInputs puts the hash of the inputs into the Pod template of an item.
func addInputs(c client.Client, it *item) error {
	if len(it.policy.inputs) == 0 {
		return nil
	}
	spec, _ := it.content["spec"].(map[string]any)
	if job, ok := spec["jobTemplate"].(map[string]any); ok { // of a CronJob
		spec, _ = job["spec"].(map[string]any)
	}
	template, ok := spec["template"].(map[string]any)
	if !ok {
		return errors.New("it has no Pod template, which apply.RestartOn needs")
	}
	metadata, ok := template["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		template["metadata"] = metadata
	}
	h := sha256.New()
	for _, input := range it.policy.inputs {
		if err := writeInput(c, h.Write, input); err != nil {
			return fmt.Errorf("apply.RestartOn: %w", err)
		}
	}
	return put(metadata, "annotations", inputsAnnotation, short32(h.Sum(nil)))
}

// writeInput writes what Pods see of an input.
func writeInput(c client.Client, write func([]byte) (int, error), input client.Object) error {
	if isNil(input) {
		_, err := write([]byte("none\n"))
		return err
	}
	gvk, err := c.GroupVersionKindFor(input)
	if err != nil {
		return err
	}
	u, err := unstructuredOf(input, gvk)
	if err != nil {
		return err
	}
	content := map[string]any{"of": refOf(gvk.GroupKind(), client.ObjectKeyFromObject(input)).String()}
	fields := []string{"data", "binaryData"}
	if u.Object["data"] == nil && u.Object["binaryData"] == nil {
		fields = []string{"spec"}
	}
	for _, field := range fields {
		content[field] = u.Object[field]
	}
	data, err := json.Marshal(content) // with its keys in order
	if err == nil {
		_, err = write(append(data, '\n'))
	}
	return err
}

// short32 returns a hash as text that may stand in names.
func short32(sum []byte) string {
	return strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:10]))
}

// ChildName returns a name for a child that is made of others: those of its owner and what it is for,
// joined by hyphens. It is a DNS label, which every kind allows: what does not fit into 63 characters, or
// is no letter or digit in lower case, is replaced, and a hash of all parts keeps the names apart.
//
//	apply.ChildName(site.Name, "web") // "shop-web"
func ChildName(parts ...string) string {
	name := strings.Join(parts, "-")
	if len(validation.IsDNS1123Label(name)) == 0 {
		return name
	}
	h := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	hash := short32(h[:])[:8]
	clean := strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name)), "-")
	clean = strings.TrimRight(clean[:min(len(clean), validation.DNS1123LabelMaxLength-1-len(hash))], "-")
	return strings.TrimLeft(clean+"-"+hash, "-")
}

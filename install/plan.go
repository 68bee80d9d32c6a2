// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	apiversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"
)

// A plan is what becomes of a definition.
type plan struct {
	wanted map[string]any // what is applied; nil for nothing
	kept   string         // why a newer one is kept
}

// A StoredVersionError says that a version can't be removed, because objects may be stored in it.
type StoredVersionError struct {
	Definition string
	Version    string
}

func (e *StoredVersionError) Error() string {
	return fmt.Sprintf("version %s is in status.storedVersions, and the new definition does not have it: objects that are stored in it could not be read any more. "+
		"Migrate first: keep the version with served: false, write each object again (kubectl get %s -A -o json | kubectl replace -f -), "+
		"then remove it from status.storedVersions (kubectl patch crd %s --subresource=status). Or keep it unserved: install.Options.KeepStored", e.Version, e.Definition, e.Definition)
}

// plan compares a definition with the one in the cluster, which is nil if there is none.
func (i *Installer) plan(d, current *Definition) (plan, error) {
	d = d.DeepCopy()
	hash, err := hashOf(d)
	if err != nil {
		return plan{}, err
	}
	if current != nil {
		if why := i.newer(d, current); why != "" && !i.options.ReplaceNewer {
			return plan{kept: why}, nil
		}
		if err := i.keepStored(d, current); err != nil {
			return plan{}, err
		}
	}
	keepBundle(d, current, i.options.Name)
	if current != nil && current.Annotations[hashAnnotation] == hash && covers(current, d) {
		return plan{}, nil
	}
	annotations := map[string]string{hashAnnotation: hash}
	maps.Copy(annotations, d.Annotations)
	if i.options.Revision != "" {
		annotations[revisionAnnotation] = i.options.Revision
	}
	d.Annotations = annotations
	wanted, err := contentOf(d)
	return plan{wanted: wanted}, err
}

// newer says why the definition in the cluster is newer, "" if it is not.
func (i *Installer) newer(d, current *Definition) string {
	there := current.Annotations[revisionAnnotation]
	if i.options.Revision != "" {
		theirs, err := apiversion.ParseGeneric(there)
		ours := apiversion.MustParseGeneric(i.options.Revision) // New has checked it
		if err == nil && ours.LessThan(theirs) {
			return fmt.Sprintf("it is of revision %s, and this one of %s", there, i.options.Revision)
		}
		return ""
	}
	if there != "" {
		return "it is of revision " + there + ", and this one has none"
	}
	for n := range current.Spec.Versions {
		theirs := &current.Spec.Versions[n]
		ours := versionOf(d, theirs.Name)
		if ours == nil {
			if laterThanAll(theirs.Name, d) {
				return "it has the version " + theirs.Name
			}
			continue
		}
		if theirs.Schema == nil || ours.Schema == nil {
			continue
		}
		if path := lacks(ours.Schema.OpenAPIV3Schema, theirs.Schema.OpenAPIV3Schema, ""); path != "" {
			return "its version " + theirs.Name + " has the field " + path
		}
	}
	return ""
}

func laterThanAll(name string, d *Definition) bool {
	for n := range d.Spec.Versions {
		if version.CompareKubeAwareVersionStrings(name, d.Spec.Versions[n].Name) <= 0 {
			return false
		}
	}
	return true
}

// lacks returns the first field that one schema has and the other does not, "" if there is none.
func lacks(ours, theirs *apiextensionsv1.JSONSchemaProps, path string) string {
	if ours == nil || theirs == nil {
		return ""
	}
	if ours.XPreserveUnknownFields == nil || !*ours.XPreserveUnknownFields {
		for _, name := range slices.Sorted(maps.Keys(theirs.Properties)) {
			below := strings.TrimPrefix(path+"."+name, ".")
			mine, ok := ours.Properties[name]
			if !ok {
				return below
			}
			other := theirs.Properties[name]
			if found := lacks(&mine, &other, below); found != "" {
				return found
			}
		}
	}
	if ours.Items != nil && theirs.Items != nil {
		if found := lacks(ours.Items.Schema, theirs.Items.Schema, path+"[]"); found != "" {
			return found
		}
	}
	if ours.AdditionalProperties != nil && theirs.AdditionalProperties != nil {
		return lacks(ours.AdditionalProperties.Schema, theirs.AdditionalProperties.Schema, path+"[]")
	}
	return ""
}

// keepStored adds the versions in which objects may be stored, or refuses to leave them out.
func (i *Installer) keepStored(d, current *Definition) error {
	stored := slices.Clone(current.Status.StoredVersions)
	for n := range current.Spec.Versions { // the status may be older than the spec
		if v := &current.Spec.Versions[n]; v.Storage && !slices.Contains(stored, v.Name) {
			stored = append(stored, v.Name)
		}
	}
	for _, name := range stored {
		if versionOf(d, name) != nil {
			continue
		}
		theirs := versionOf(current, name)
		if !i.options.KeepStored || theirs == nil {
			return &StoredVersionError{d.Name, name}
		}
		kept := *theirs.DeepCopy()
		kept.Served, kept.Storage = false, false
		d.Spec.Versions = append(d.Spec.Versions, kept)
	}
	return nil
}

func versionOf(d *Definition, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	for n := range d.Spec.Versions {
		if d.Spec.Versions[n].Name == name {
			return &d.Spec.Versions[n]
		}
	}
	return nil
}

// keepBundle leaves the caBundle of a conversion webhook to the client that has set it, such as
// cert-manager. A placeholder of a generator is left out.
func keepBundle(d, current *Definition, manager string) {
	ours := clientConfigOf(d)
	if ours == nil {
		return
	}
	if len(bytes.TrimSpace(ours.CABundle)) == 0 {
		ours.CABundle = nil
	}
	theirs := (*apiextensionsv1.WebhookClientConfig)(nil)
	if current != nil {
		theirs = clientConfigOf(current)
	}
	if theirs != nil && len(theirs.CABundle) > 0 && !setsBundle(current, manager) {
		ours.CABundle = nil
	}
}

func clientConfigOf(d *Definition) *apiextensionsv1.WebhookClientConfig {
	if c := d.Spec.Conversion; c != nil && c.Webhook != nil {
		return c.Webhook.ClientConfig
	}
	return nil
}

// setsBundle reports whether our manager has set the caBundle.
func setsBundle(d *Definition, manager string) bool {
	return slices.ContainsFunc(d.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == manager && e.FieldsV1 != nil && bytes.Contains(e.FieldsV1.GetRawBytes(), []byte(`"f:caBundle"`))
	})
}

// covers reports whether a definition in the cluster is as wanted. Additions of others, such as
// labels, do not count.
func covers(current, d *Definition) bool {
	wanted := d.DeepCopy()
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(wanted)
	if d.Spec.Conversion == nil {
		wanted.Spec.Conversion = current.Spec.Conversion
	} else if ours, theirs := clientConfigOf(wanted), clientConfigOf(current); ours != nil && theirs != nil && len(ours.CABundle) == 0 {
		ours.CABundle = theirs.CABundle
	}
	ours, err := contentOf(wanted) // as JSON, in which defaults of any form can be compared
	theirs, err2 := contentOf(current)
	return err == nil && err2 == nil && equality.Semantic.DeepEqual(ours["spec"], theirs["spec"]) &&
		isSubset(d.Labels, current.Labels) && isSubset(d.Annotations, current.Annotations)
}

func isSubset(part, whole map[string]string) bool {
	for key, value := range part {
		if there, ok := whole[key]; !ok || there != value {
			return false
		}
	}
	return true
}

// hashOf returns a hash of what the author of a definition wants.
func hashOf(d *Definition) (string, error) {
	content, err := contentOf(d)
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(content)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), err
}

// contentOf returns what is applied: the names, labels, annotations and the spec.
func contentOf(d *Definition) (map[string]any, error) {
	data, err := json.Marshal(&Definition{
		ObjectMeta: metav1.ObjectMeta{Name: d.Name, Labels: d.Labels, Annotations: d.Annotations}, Spec: d.Spec,
	})
	if err != nil {
		return nil, err
	}
	var content map[string]any
	if err := utiljson.Unmarshal(data, &content); err != nil {
		return nil, err
	}
	delete(content, "status")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	content["apiVersion"], content["kind"] = apiextensionsv1.SchemeGroupVersion.String(), "CustomResourceDefinition"
	return content, nil
}

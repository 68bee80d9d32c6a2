// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package actor

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
)

// What an occupant of a kind keeps of the operator's object is what the server demands.
func TestOccupantsAreUnlikeTheOperators(t *testing.T) {
	const template = `{"metadata":{"labels":{"own":"1"}},"spec":{"containers":[{"name":"main","image":"nginx:1","env":[{"name":"A","value":"b"}]},{"name":"b","image":"c"}]}}`
	const another = `{"metadata":{"labels":{"app":"another"}},"spec":{"containers":[{"image":"another","name":"main"}]}}`
	tests := map[string]struct{ path, content, want string }{
		"Secret":     {"/api/v1/namespaces/default/secrets", `"type":"Opaque","data":{"password":"MQ=="}`, `{"data":{"another":"MQ=="}}`},
		"Service":    {"/api/v1/namespaces/default/services", `"spec":{"clusterIP":"None","selector":{"own":"1"},"ports":[{"port":80,"name":"http"}]}`, `{"spec":{"ports":[{"name":"http","port":80}],"selector":{"app":"another"}}}`},
		"Deployment": {"/apis/apps/v1/namespaces/default/deployments", `"spec":{"replicas":3,"selector":{"matchLabels":{"own":"1"}},"template":` + template + `}`, `{"spec":{"selector":{"matchLabels":{"app":"another"}},"template":` + another + `}}`},
		"Job":        {"/apis/batch/v1/namespaces/default/jobs", `"spec":{"parallelism":2,"template":` + strings.Replace(template, `"spec":{`, `"spec":{"restartPolicy":"Never",`, 1) + `}`, `{"spec":{"template":` + strings.Replace(another, `]}`, `],"restartPolicy":"Never"}`, 1) + `}}`},
		"PersistentVolumeClaim": {"/api/v1/namespaces/default/persistentvolumeclaims", `"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}`,
			`{"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`},
	}
	for kind, test := range tests {
		inWorld(t, func(w *world) {
			r := w.request("POST", test.path, `{"metadata":{"name":"y","labels":{"own":"1"}},`+test.content+`}`)
			wanted, ok := cluster.CreatedBy(r)
			if !ok || !w.cluster.Accepts(test.path, wanted.Object) {
				t.Fatalf("%s: the operator's object is not valid", kind)
			}
			occupant := (&disguise{cluster: w.cluster, resource: r.Resource, collection: test.path}).of(wanted)
			labels := occupant.GetLabels()
			delete(occupant.Object, "metadata")
			if text, err := json.Marshal(occupant.Object); string(text) != test.want || err != nil || labels["app"] != "another" {
				t.Errorf("%s: got %s with %v, want %s", kind, text, labels, test.want)
			}
			occupant.SetName("y")
			if !w.cluster.Accepts(test.path, occupant.Object) {
				t.Errorf("%s: the occupant is not valid", kind)
			}
		})
	}
}

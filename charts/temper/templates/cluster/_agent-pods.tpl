{{/*
Pods of agents, in every namespace. The selector and not a condition limits this policy to them: the API server converts an object before it
evaluates a condition, and ordinary pods of the cluster should not pay for that.
*/}}
{{- define "temper.admissionPolicy.agent-pods" -}}
{{- $volumes := dict
  "expression" "has(v.configMap)"
  "message" "the pod of an agent may mount only empty volumes, ConfigMaps and its tokens for the gateway and egress" }}
failurePolicy: Fail
matchConstraints:
  matchPolicy: Equivalent
  namespaceSelector: {}
  objectSelector:
    matchExpressions: [{key: temper.dev/agent-pod, operator: Exists}]
  resourceRules:
    - apiGroups: [""]
      apiVersions: ["*"]
      operations: [CREATE, UPDATE]
      resources: [pods, pods/ephemeralcontainers, pods/resize]
      scope: "*"
    {{- if .Values.admissionPolicies.checkStatusWrites }}
    # The API server copies labels from a status and from a binding into the pod.
    - apiGroups: [""]
      apiVersions: ["*"]
      operations: [CREATE, UPDATE]
      resources: [pods/status, pods/binding, bindings]
      scope: "*"
    {{- end }}
variables:
  - name: isOperator
    expression: {{ include "temper.cel.isOperator" . | quote }}
  - name: isCollector
    expression: {{ include "temper.cel.isCollector" . | quote }}
  - name: isPod
    expression: request.resource.resource == 'pods' && (!has(request.subResource) || request.subResource == '')
  - name: isCreated
    expression: variables.isPod && request.operation == 'CREATE'
  - name: isDryRun
    expression: has(request.dryRun) && request.dryRun
  - name: labels
    expression: "object != null && has(object.metadata.labels) ? object.metadata.labels : {}"
  - name: oldLabels
    expression: "oldObject != null && has(oldObject.metadata.labels) ? oldObject.metadata.labels : {}"
  - name: owners
    expression: "object != null && has(object.metadata.ownerReferences) ? object.metadata.ownerReferences.map(o, o.uid + (has(o.controller) && o.controller ? '!' : '')) : []"
  - name: oldOwners
    expression: "oldObject != null && has(oldObject.metadata.ownerReferences) ? oldObject.metadata.ownerReferences.map(o, o.uid + (has(o.controller) && o.controller ? '!' : '')) : []"
  - name: containers
    expression: "!variables.isPod ? [] : object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : [])"
  - name: oldContainers
    expression: >-
      !variables.isPod || oldObject == null ? [] :
      oldObject.spec.containers + (has(oldObject.spec.initContainers) ? oldObject.spec.initContainers : [])
validations:
  - expression: >-
      variables.isOperator || ['temper.dev/agent-pod', 'temper.dev/agent-uid', 'temper.dev/egress'].all(l,
        (l in variables.labels) == (l in variables.oldLabels) && (!(l in variables.labels) || variables.labels[l] == variables.oldLabels[l]))
    message: only the Temper operator sets the labels temper.dev/agent-pod, temper.dev/agent-uid and temper.dev/egress; create an Agent instead of a pod
    reason: Forbidden
  # Label and controller bind a pod to an agent. A bound pod is never bound again, so a late claim of a previous leader takes it from no agent.
  - expression: "!('temper.dev/agent-uid' in variables.oldLabels) || ('temper.dev/agent-uid' in variables.labels && variables.labels['temper.dev/agent-uid'] == variables.oldLabels['temper.dev/agent-uid'])"
    message: the pod of an agent keeps the label temper.dev/agent-uid, which binds it; delete the pod instead
    reason: Forbidden
  - expression: >-
      !variables.isPod || oldObject == null || variables.isOperator || variables.isCollector || variables.owners == variables.oldOwners
    message: only the Temper operator sets the owner of an agent's pod, which binds it
    reason: Forbidden
  # Without the label, no policy and no network policy would apply to the pod any more.
  - expression: "!('temper.dev/agent-pod' in variables.oldLabels) || 'temper.dev/agent-pod' in variables.labels"
    message: the pod of an agent keeps the label temper.dev/agent-pod, which the deny-all network policy selects
    reason: Forbidden
  - expression: "!has(request.subResource) || !(request.subResource in ['ephemeralcontainers', 'resize'])"
    message: the pod of an agent cannot be resized or given containers; change the Agent instead
    reason: Forbidden
  {{- include "temper.podShape" (dict "root" . "what" "the pod of an agent" "every" "an agent's pod" "account" "temper-agent" "volumes" $volumes) }}
{{- end }}

{{/* Whether the container c has an image of this release or of the list. An entry of the list that ends in * is a prefix. */}}
{{- define "temper.cel.isAgentImage" -}}
{{- $images := list (include "temper.image" (dict "root" . "image" .Values.image)) (include "temper.image" (dict "root" . "image" .Values.sandboxImage)) -}}
{{- range .Values.sandboxClasses }}{{ with .image }}{{ $images = append $images . }}{{ end }}{{ end -}}
{{- range .Values.agentPrograms }}{{ $images = append $images .image }}{{ end -}}
{{- $tests := list -}}
{{- range .Values.admissionPolicies.agentPods.images -}}
{{- if hasSuffix "*" . }}{{ $tests = append $tests (printf "c.image.startsWith('%s')" (trimSuffix "*" .)) }}{{ else }}{{ $images = append $images . }}{{ end -}}
{{- end -}}
{{- $quoted := list -}}
{{- range $images | uniq | sortAlpha }}{{ $quoted = append $quoted (squote .) }}{{ end -}}
{{- join " || " (prepend $tests (printf "c.image in [%s]" (join ", " $quoted))) -}}
{{- end }}

{{- define "temper.agentPullSecrets" -}}
{{- $quoted := list -}}
{{- range concat .Values.imagePullSecrets .Values.admissionPolicies.agentPods.imagePullSecrets | uniq | sortAlpha }}{{ $quoted = append $quoted (squote .) }}{{ end -}}
[{{ join ", " $quoted }}]
{{- end }}

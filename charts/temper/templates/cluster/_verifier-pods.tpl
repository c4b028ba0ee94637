{{/*
Verifier pods: a second shape of pods with untrusted code, which only the operator creates, and only in the namespace of a release. They run
hostile tools, so they have no account of the release, no Secret, and no token but the one for the gateway.
*/}}
{{- define "temper.admissionPolicy.verifier-pods" -}}
{{- $volumes := dict
  "expression" "(has(v.configMap) && v.configMap.name == 'temper-endpoints')"
  "message" "a verifier pod may mount only empty volumes, the ConfigMap temper-endpoints and its token for the gateway" }}
failurePolicy: Fail
matchConstraints:
  matchPolicy: Equivalent
  namespaceSelector: {}
  objectSelector:
    matchExpressions: [{key: temper.dev/verifier-pod, operator: Exists}]
  resourceRules:
    - apiGroups: [""]
      apiVersions: ["*"]
      operations: [CREATE, UPDATE]
      resources: [pods, pods/ephemeralcontainers, pods/resize]
      scope: "*"
variables:
  - name: isOperator
    expression: {{ include "temper.cel.isOperator" . | quote }}
  - name: isPod
    expression: request.resource.resource == 'pods' && (!has(request.subResource) || request.subResource == '')
  - name: isCreated
    expression: variables.isPod && request.operation == 'CREATE'
  - name: isDryRun
    expression: "false"
  - name: labels
    expression: "object != null && has(object.metadata.labels) ? object.metadata.labels : {}"
  - name: oldLabels
    expression: "oldObject != null && has(oldObject.metadata.labels) ? oldObject.metadata.labels : {}"
  - name: containers
    expression: "!variables.isPod ? [] : object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : [])"
  - name: oldContainers
    expression: >-
      !variables.isPod || oldObject == null ? [] :
      oldObject.spec.containers + (has(oldObject.spec.initContainers) ? oldObject.spec.initContainers : [])
validations:
  - expression: >-
      variables.isOperator || ['temper.dev/verifier-pod', 'temper.dev/verification'].all(l,
        (l in variables.labels) == (l in variables.oldLabels) && (!(l in variables.labels) || variables.labels[l] == variables.oldLabels[l]))
    message: only the Temper operator sets the labels temper.dev/verifier-pod and temper.dev/verification
    reason: Forbidden
  - expression: request.namespace in {{ include "temper.operatorNamespaces" . }}
    message: a verifier pod runs only in the namespace of a release
    reason: Forbidden
  # Without the label, no policy and no network policy would apply to the pod any more.
  - expression: "!('temper.dev/verifier-pod' in variables.oldLabels) || 'temper.dev/verifier-pod' in variables.labels"
    message: a verifier pod keeps the label temper.dev/verifier-pod
    reason: Forbidden
  # The deny-all network policy of the release selects it, and the network policy of its component permits the gateway alone.
  - expression: >-
      !variables.isCreated || (
        'app.kubernetes.io/part-of' in variables.labels && variables.labels['app.kubernetes.io/part-of'] == 'temper' &&
        'app.kubernetes.io/component' in variables.labels && variables.labels['app.kubernetes.io/component'] == 'verifier')
    message: a verifier pod has the labels of its component, which the network policies select
    reason: Forbidden
  # One pod serves one verification, so that nothing a tool leaves behind meets another tool.
  - expression: "!('temper.dev/verification' in variables.oldLabels) || ('temper.dev/verification' in variables.labels && variables.labels['temper.dev/verification'] == variables.oldLabels['temper.dev/verification'])"
    message: a verifier pod keeps its verification; delete the pod instead
    reason: Forbidden
  - expression: "!has(request.subResource) || !(request.subResource in ['ephemeralcontainers', 'resize'])"
    message: a verifier pod cannot be resized or given containers
    reason: Forbidden
  {{- include "temper.podShape" (dict "root" . "what" "a verifier pod" "every" "a verifier pod" "account" "temper-verifier" "volumes" $volumes) }}
{{- end }}

{{/* The namespaces of releases whose operators are permitted, as a CEL list. */}}
{{- define "temper.operatorNamespaces" -}}
{{- $quoted := list -}}
{{- range (prepend .Values.admissionPolicies.operatorNamespaces .Release.Namespace | uniq) }}{{ $quoted = append $quoted (squote .) }}{{ end -}}
[{{ join ", " $quoted }}]
{{- end }}

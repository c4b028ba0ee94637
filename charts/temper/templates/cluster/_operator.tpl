{{/*
Requests of the operator: an account that writes pods everywhere could otherwise make a pod with a path of the node or a Secret of any namespace.
Pods with the labels are the matter of temper-agent-pods and temper-verifier-pods, and protected namespaces of temper-namespace-protection.
*/}}
{{- define "temper.admissionPolicy.operator" -}}
failurePolicy: Fail
matchConstraints:
  matchPolicy: Equivalent
  namespaceSelector:
    matchExpressions: [{key: temper.dev/agents, operator: NotIn, values: ["true"]}]
  objectSelector:
    matchExpressions:
      - {key: temper.dev/agent-pod, operator: DoesNotExist}
      - {key: temper.dev/verifier-pod, operator: DoesNotExist}
  resourceRules:
    - apiGroups: [""]
      apiVersions: ["*"]
      operations: [CREATE, UPDATE, DELETE]
      resources: [pods]
      scope: "*"
matchConditions:
  - name: operator
    expression: {{ include "temper.cel.isOperator" . | quote }}
validations:
  - expression: "false"
    message: the Temper operator creates, changes and deletes only pods with the label temper.dev/agent-pod or temper.dev/verifier-pod
    reason: Forbidden
{{- end }}

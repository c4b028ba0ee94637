{{/*
Protects namespaces with agents. Elsewhere the built-in role `edit` can create tokens bound to an agent's pod, exec into the pod, open its network and
take its name; in a protected namespace it can do none of that. Cluster administrators are refused as well: they may remove the label from the namespace.
*/}}
{{- define "temper.admissionPolicy.namespace-protection" -}}
failurePolicy: Fail
matchConstraints:
  matchPolicy: Equivalent
  namespaceSelector:
    matchLabels: {temper.dev/agents: "true"}
  objectSelector: {}
  resourceRules:
    - apiGroups: [""]
      apiVersions: ["*"]
      operations: [CONNECT]
      resources: [pods/exec, pods/attach, pods/portforward, pods/proxy, services/proxy]
      scope: "*"
    - apiGroups: [""]
      apiVersions: ["*"]
      operations: [CREATE]
      resources: [serviceaccounts/token]
      scope: "*"
    # Not pods/eviction: nodes must be drained, and the operator replaces an evicted agent pod.
    - apiGroups: [""]
      apiVersions: ["*"]
      operations: [CREATE, UPDATE, DELETE]
      resources:
        - pods
        - pods/ephemeralcontainers
        - pods/resize
        - serviceaccounts
        - secrets
        - services
        - endpoints
        - resourcequotas
        - limitranges
        - replicationcontrollers
        - replicationcontrollers/scale
        - podtemplates
      scope: "*"
    {{- if .Values.admissionPolicies.checkStatusWrites }}
    # Writes of nodes, the scheduler and controllers, which no built-in role permits to users.
    - apiGroups: [""]
      apiVersions: ["*"]
      operations: [CREATE, UPDATE, DELETE]
      resources: [bindings, pods/binding, pods/status, services/status, resourcequotas/status, replicationcontrollers/status]
      scope: "*"
    {{- end }}
    # A PodDisruptionBudget over agents that permits no disruption blocks every drain.
    - apiGroups: [policy]
      apiVersions: ["*"]
      operations: [CREATE, UPDATE, DELETE]
      resources: [poddisruptionbudgets, poddisruptionbudgets/status]
      scope: "*"
    - apiGroups: [apps, batch]
      apiVersions: ["*"]
      operations: [CREATE, UPDATE, DELETE]
      resources: ["*/*"]
      scope: "*"
    - apiGroups: [discovery.k8s.io]
      apiVersions: ["*"]
      operations: [CREATE, UPDATE, DELETE]
      resources: [endpointslices]
      scope: "*"
    # Network plugins have their own policy kinds, which can permit what a NetworkPolicy denies.
    - apiGroups: [networking.k8s.io, crd.projectcalico.org, projectcalico.org, cilium.io]
      apiVersions: ["*"]
      operations: [CREATE, UPDATE, DELETE]
      resources: [networkpolicies, ciliumnetworkpolicies]
      scope: "*"
variables:
  - name: isSystem
    expression: {{ include "temper.cel.isSystem" . | quote }}
  - name: isOperator
    expression: {{ include "temper.cel.isOperator" . | quote }}
  - name: isPlatform
    expression: {{ include "temper.cel.isPlatform" . | quote }}
  - name: isToken
    expression: request.resource.resource == 'serviceaccounts' && has(request.subResource) && request.subResource == 'token'
validations:
  - expression: request.operation != 'CONNECT' || variables.isSystem
    message: this namespace is protected because agents run in it; exec, attach, port-forward and proxy to its pods and services are forbidden. Read their logs, or ask the agent with `kubectl temper send`
    reason: Forbidden
  - expression: >-
      !variables.isToken || variables.isSystem || (
        !variables.isOperator && request.name == 'temper-users' &&
        has(object.spec.audiences) && object.spec.audiences == ['temper-gateway'] &&
        (!has(object.spec.boundObjectRef) || object.spec.boundObjectRef == null)
      )
    message: this namespace is protected because agents run in it; the only tokens that may be requested here are unbound tokens of temper-users for the audience temper-gateway
    reason: Forbidden
  - expression: >-
      request.operation == 'CONNECT' || variables.isToken || variables.isSystem || (
        variables.isOperator && !has(request.subResource) &&
        request.resource.resource in ['pods', 'serviceaccounts', 'networkpolicies', 'resourcequotas']
      ) || (
        request.resource.resource == 'resourcequotas' && !has(request.subResource) && !(request.name in ['', 'temper-agents']) &&
        variables.isPlatform
      ) || (
        !variables.isOperator && request.resource.resource == 'secrets' && request.name == 'temper-webhooks' &&
        (request.operation == 'DELETE' || (has(object.type) && object.type == 'Opaque'))
      )
    message: this namespace is protected because agents run in it; only the Temper operator creates pods, workloads, services, service accounts, network policies, disruption budgets, limits and quotas here, and the only Secret that others write is temper-webhooks of type Opaque. Use another namespace for your workloads
    reason: Forbidden
  # The operator also probes this rule: it trusts the protection only after a dry run of such a pod is refused.
  - expression: >-
      !variables.isOperator || request.resource.resource != 'pods' || has(request.subResource) || request.operation == 'CONNECT' ||
      [object, oldObject].all(o, o == null || (has(o.metadata.labels) && 'temper.dev/agent-pod' in o.metadata.labels))
    message: a pod that the operator creates, changes or deletes in this namespace needs the label temper.dev/agent-pod, which the deny-all network policy selects
    reason: Forbidden
{{- end }}

{{/*
Events in the name of a node or of the control plane, which the operator shows as the cause of a late pod. The core group also matches
events.k8s.io, which is another name of the same objects. Not in the name of an operator: that of a release that is not listed yet reports so.
*/}}
{{- define "temper.admissionPolicy.events" -}}
failurePolicy: Fail
matchConstraints:
  matchPolicy: Equivalent
  namespaceSelector:
    matchLabels: {temper.dev/agents: "true"}
  objectSelector: {}
  resourceRules:
    - apiGroups: [""]
      apiVersions: [v1]
      operations: [CREATE, UPDATE]
      resources: [events]
      scope: "*"
variables:
  - name: isSystem
    expression: {{ include "temper.cel.isSystem" . | quote }}
  - name: components
    expression: >-
      [has(object.reportingComponent) ? object.reportingComponent : '',
       has(object.source) && has(object.source.component) ? object.source.component : '']
validations:
  - expression: >-
      variables.isSystem ||
      !variables.components.exists(c, c in ['kubelet', 'default-scheduler', 'attachdetach-controller', 'node-controller', 'taint-eviction-controller'])
    message: only nodes and the control plane write Events in their own name here; set another reportingComponent
    reason: Forbidden
{{- end }}

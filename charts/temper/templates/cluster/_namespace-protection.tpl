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
        - pods/binding
        - pods/ephemeralcontainers
        - pods/resize
        - pods/status
        - serviceaccounts
        - secrets
        - services
        - services/status
        - endpoints
        - resourcequotas
        - resourcequotas/status
        - replicationcontrollers
        - replicationcontrollers/scale
        - podtemplates
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
      )
    message: this namespace is protected because agents run in it; only the Temper operator creates pods, workloads, secrets, services, service accounts, network policies and quotas here. Use another namespace for your workloads
    reason: Forbidden
  # The operator also probes this rule: it trusts the protection only after a dry run of such a pod is refused.
  - expression: >-
      !variables.isOperator || request.operation != 'CREATE' || request.resource.resource != 'pods' || has(request.subResource) ||
      (has(object.metadata.labels) && 'temper.dev/agent-pod' in object.metadata.labels)
    message: a pod that the operator creates in this namespace needs the label temper.dev/agent-pod, which the deny-all network policy selects
    reason: Forbidden
{{- end }}

{{/*
The fence around namespaces with agents. The built-in role `edit` mints tokens bound to an agent's pod, enters it, opens its network and
squats its name; here it does none of that. Cluster administrators are refused as well: they may take the label off the namespace.
*/}}
{{- define "temper.guard.fence" -}}
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
    # Not pods/eviction: nodes must be drained, and an evicted agent comes back.
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
    # Network plugins have policies of their own that open what ours close.
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
    message: agents live in this namespace; nobody enters, attaches to or proxies to its pods and services. Read their logs, or ask the agent with `kubectl temper send`
    reason: Forbidden
  - expression: >-
      !variables.isToken || variables.isSystem || (
        !variables.isOperator && request.name == 'temper-people' &&
        has(object.spec.audiences) && object.spec.audiences == ['temper-gateway'] &&
        (!has(object.spec.boundObjectRef) || object.spec.boundObjectRef == null)
      )
    message: agents live in this namespace; the only tokens made here are those of temper-people, for the audience temper-gateway, bound to nothing
    reason: Forbidden
  - expression: >-
      request.operation == 'CONNECT' || variables.isToken || variables.isSystem || (
        variables.isOperator && !has(request.subResource) &&
        request.resource.resource in ['pods', 'serviceaccounts', 'networkpolicies', 'resourcequotas']
      )
    message: agents live in this namespace; only the Temper operator makes pods, workloads, secrets, services, service accounts, network policies and quotas here. Use another namespace for your own
    reason: Forbidden
  # Also what the operator probes: a dry run of such a pod must be refused before it trusts the fence.
  - expression: >-
      !variables.isOperator || request.operation != 'CREATE' || request.resource.resource != 'pods' || has(request.subResource) ||
      (has(object.metadata.labels) && 'temper.dev/agent-pod' in object.metadata.labels)
    message: a pod of the operator in this namespace bears the label temper.dev/agent-pod, or no network policy closes it
    reason: Forbidden
{{- end }}

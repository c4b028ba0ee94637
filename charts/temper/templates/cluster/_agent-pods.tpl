{{/*
Pods of agents, in every namespace. The selector and not a condition limits this policy to them: the API server converts an object before it
evaluates a condition, and ordinary pods of the cluster should not pay for that.
*/}}
{{- define "temper.admissionPolicy.agent-pods" -}}
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
      variables.isOperator || ['temper.dev/agent-pod', 'temper.dev/agent-uid'].all(l,
        (l in variables.labels) == (l in variables.oldLabels) && (!(l in variables.labels) || variables.labels[l] == variables.oldLabels[l]))
    message: only the Temper operator sets the labels temper.dev/agent-pod and temper.dev/agent-uid; create an Agent instead of a pod
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
  # A compromised operator cannot mount a tenant's Secret into a pod. Dry runs are exempt: the operator probes before the account exists.
  - expression: >-
      !variables.isCreated || variables.isDryRun || (
        object.spec.serviceAccountName == 'temper-agent' && has(object.spec.automountServiceAccountToken) && !object.spec.automountServiceAccountToken
      )
    message: the pod of an agent must run as temper-agent, without a token for the API server
    reason: Forbidden
  - expression: >-
      !variables.isCreated || !has(object.spec.volumes) || object.spec.volumes.all(v,
        has(v.emptyDir) || has(v.ephemeral) || has(v.configMap) ||
        (has(v.projected) && has(v.projected.sources) && v.projected.sources.all(s,
          (has(s.configMap) && s.configMap.name == 'temper-endpoints') ||
          (has(s.serviceAccountToken) && has(s.serviceAccountToken.audience) &&
            s.serviceAccountToken.audience in ['temper-gateway', 'temper-egress'] && s.serviceAccountToken.expirationSeconds <= 3600))))
    message: the pod of an agent may mount only empty volumes, ConfigMaps and its tokens for the gateway and egress
    reason: Forbidden
  - expression: >-
      !variables.isCreated || variables.containers.all(c,
        !has(c.envFrom) && (!has(c.env) || c.env.all(e, !has(e.valueFrom) || has(e.valueFrom.fieldRef) || has(e.valueFrom.resourceFieldRef))))
    message: the environment of an agent's pod must not refer to Secrets or ConfigMaps
    reason: Forbidden
  - expression: >-
      !variables.isCreated || (
        (!has(object.spec.hostNetwork) || !object.spec.hostNetwork) && (!has(object.spec.hostPID) || !object.spec.hostPID) &&
        (!has(object.spec.hostIPC) || !object.spec.hostIPC) && (!has(object.spec.shareProcessNamespace) || !object.spec.shareProcessNamespace) &&
        variables.containers.all(c, !has(c.ports) || c.ports.all(p, !has(p.hostPort) || p.hostPort == 0))
      )
    message: the pod of an agent must not share the network, processes or ports of its node, nor processes between its containers
    reason: Forbidden
  - expression: >-
      !variables.isCreated || (
        has(object.spec.securityContext) && has(object.spec.securityContext.seccompProfile) &&
        object.spec.securityContext.seccompProfile.type != 'Unconfined' && !has(object.spec.securityContext.sysctls) &&
        variables.containers.all(c, has(c.securityContext) &&
          (!has(c.securityContext.privileged) || !c.securityContext.privileged) &&
          has(c.securityContext.allowPrivilegeEscalation) && !c.securityContext.allowPrivilegeEscalation &&
          has(c.securityContext.capabilities) && !has(c.securityContext.capabilities.add) &&
          has(c.securityContext.capabilities.drop) && 'ALL' in c.securityContext.capabilities.drop &&
          (has(c.securityContext.runAsNonRoot) ? c.securityContext.runAsNonRoot :
            has(object.spec.securityContext.runAsNonRoot) && object.spec.securityContext.runAsNonRoot) &&
          (!has(c.securityContext.runAsUser) || c.securityContext.runAsUser != 0) &&
          (!has(c.securityContext.procMount) || c.securityContext.procMount == 'Default') &&
          (!has(c.securityContext.seccompProfile) || c.securityContext.seccompProfile.type != 'Unconfined'))
      )
    message: every container of an agent's pod must run as a user other than root, without privileges and capabilities, under a seccomp profile
    reason: Forbidden
  # Also on update: the image is one of the few fields of a pod that can change. Dry runs are exempt: the operator probes with another image.
  - expression: >-
      variables.isDryRun || variables.containers.all(c,
        {{ include "temper.cel.isAgentImage" . }} || variables.oldContainers.exists(o, o.name == c.name && o.image == c.image))
    messageExpression: >-
      'the pod of an agent runs only images of the release, and not ' + variables.containers.map(c, c.image).join(', ') + '; list others in admissionPolicies.agentPods.images'
    message: the pod of an agent runs only images of the release; list others in admissionPolicies.agentPods.images
    reason: Forbidden
  - expression: >-
      !variables.isCreated || variables.isDryRun || !has(object.spec.imagePullSecrets) ||
      object.spec.imagePullSecrets.all(s, s.name in {{ include "temper.agentPullSecrets" . }})
    message: the pod of an agent uses only the pull secrets of the release; list others in admissionPolicies.agentPods.imagePullSecrets
    reason: Forbidden
{{- end }}

{{/* Whether the container c has an image of this release or of the list. An entry of the list that ends in * is a prefix. */}}
{{- define "temper.cel.isAgentImage" -}}
{{- $images := list (include "temper.image" (dict "root" . "image" .Values.image)) (include "temper.image" (dict "root" . "image" .Values.sandboxImage)) -}}
{{- range .Values.sandboxClasses }}{{ with .image }}{{ $images = append $images . }}{{ end }}{{ end -}}
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

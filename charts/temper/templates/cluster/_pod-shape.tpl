{{/*
Validations of pods that the operator creates and that run untrusted code. They use the variables of the policies. Takes root, what and every
(the pod as the subject of a sentence, and after "of"), account, and volumes: the further volumes as a condition on v, and the message.
*/}}
{{- define "temper.podShape" }}
  # A compromised operator cannot mount a tenant's Secret into a pod. Dry runs are exempt: the operator probes before the account exists.
  - expression: >-
      !variables.isCreated || variables.isDryRun || (
        object.spec.serviceAccountName == '{{ .account }}' && has(object.spec.automountServiceAccountToken) && !object.spec.automountServiceAccountToken
      )
    message: {{ .what }} must run as {{ .account }}, without a token for the API server
    reason: Forbidden
  - expression: >-
      !variables.isCreated || !has(object.spec.volumes) || object.spec.volumes.all(v,
        has(v.emptyDir) || has(v.ephemeral) || {{ .volumes.expression }} ||
        (has(v.projected) && has(v.projected.sources) && v.projected.sources.all(s,
          (has(s.configMap) && s.configMap.name == 'temper-endpoints') ||
          (has(s.serviceAccountToken) && has(s.serviceAccountToken.audience) &&
            s.serviceAccountToken.audience in ['temper-gateway', 'temper-egress'] && s.serviceAccountToken.expirationSeconds <= 3600))))
    message: {{ .volumes.message }}
    reason: Forbidden
  - expression: >-
      !variables.isCreated || variables.containers.all(c,
        !has(c.envFrom) && (!has(c.env) || c.env.all(e, !has(e.valueFrom) || has(e.valueFrom.fieldRef) || has(e.valueFrom.resourceFieldRef))))
    message: the environment of {{ .every }} must not refer to Secrets or ConfigMaps
    reason: Forbidden
  - expression: >-
      !variables.isCreated || (
        (!has(object.spec.hostNetwork) || !object.spec.hostNetwork) && (!has(object.spec.hostPID) || !object.spec.hostPID) &&
        (!has(object.spec.hostIPC) || !object.spec.hostIPC) && (!has(object.spec.shareProcessNamespace) || !object.spec.shareProcessNamespace) &&
        variables.containers.all(c, !has(c.ports) || c.ports.all(p, !has(p.hostPort) || p.hostPort == 0))
      )
    message: {{ .what }} must not share the network, processes or ports of its node, nor processes between its containers
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
    message: every container of {{ .every }} must run as a user other than root, without privileges and capabilities, under a seccomp profile
    reason: Forbidden
  # Also on update: the image is one of the few fields of a pod that can change. Dry runs are exempt: the operator probes with another image.
  - expression: >-
      variables.isDryRun || variables.containers.all(c,
        {{ include "temper.cel.isAgentImage" .root }} || variables.oldContainers.exists(o, o.name == c.name && o.image == c.image))
    messageExpression: >-
      '{{ .what }} runs only images of the release, and not ' + variables.containers.map(c, c.image).join(', ') + '; list others in admissionPolicies.agentPods.images'
    message: {{ .what }} runs only images of the release; list others in admissionPolicies.agentPods.images
    reason: Forbidden
  - expression: >-
      !variables.isCreated || variables.isDryRun || !has(object.spec.imagePullSecrets) ||
      object.spec.imagePullSecrets.all(s, s.name in {{ include "temper.agentPullSecrets" .root }})
    message: {{ .what }} uses only the pull secrets of the release; list others in admissionPolicies.agentPods.imagePullSecrets
    reason: Forbidden
{{- end }}

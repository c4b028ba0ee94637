{{/*
A ValidatingAdmissionPolicy and its binding, each with the digest of its spec. The API server adds nothing to these specs (every
default is written out), so a digest over the stored spec, as canonical JSON, must be equal. Keep the specs in ASCII: then this is RFC 8785.
Takes name, spec (YAML of the policy's spec), and paramRef (YAML) where the policy has parameters.
*/}}
{{- define "temper.admissionPolicy" -}}
{{- $spec := fromYaml .spec -}}
{{- if hasKey $spec "Error" }}{{ fail (printf "admission policy %s: %s" .name $spec.Error) }}{{ end -}}
{{- $binding := dict "policyName" .name "validationActions" (list "Deny") -}}
{{- with .paramRef }}{{ $_ := set $binding "paramRef" (fromYaml .) }}{{ end -}}
{{- range $kind, $content := dict "ValidatingAdmissionPolicy" $spec "ValidatingAdmissionPolicyBinding" $binding }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ $.name }}
  labels:
    {{- include "temper.labels" $.root | nindent 4 }}
    temper.dev/admission-policy: "true"
  annotations:
    temper.dev/admission-policy-digest: sha256:{{ $content | toRawJson | sha256sum }}
spec:
  {{- $content | toYaml | nindent 2 }}
{{- end }}
{{- end }}

{{/* The names of all policies, without the prefix `temper-`, as a JSON list. */}}
{{- define "temper.admissionPolicyNames" -}}
{{- list "namespace-protection" "events" "agent-pods" "verifier-pods" "operator" "namespaces" "config-maps" "config-map-collections" "reserved" "use-policy" "child-agents" "resume" "approvals" "contributors" | toJson -}}
{{- end }}

{{/* Digests of the policies by name, which the operator compares. */}}
{{- define "temper.admissionPolicyDigests" -}}
{{- range $name := include "temper.admissionPolicyNames" $ | fromJsonArray }}
temper-{{ $name }}: sha256:{{ include (printf "temper.admissionPolicy.%s" $name) $ | fromYaml | toRawJson | sha256sum }}
{{- end }}
{{- end }}

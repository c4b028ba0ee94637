{{/*
Rights of a component in the watched namespaces: one ClusterRole and binding for all namespaces, or a Role and binding in each.
Takes root, component and rules.
*/}}
{{- define "temper.watchedRights" -}}
{{- $root := .root -}}
{{- $subject := printf "subjects:\n  - {kind: ServiceAccount, name: temper-%s, namespace: %s}" .component .root.Release.Namespace -}}
{{- $labels := include "temper.componentLabels" . -}}
{{- $rules := .rules -}}
{{- $component := .component -}}
{{- if not .root.Values.namespaces }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: temper:{{ $root.Release.Namespace }}:{{ $component }}
  labels:
    {{- $labels | nindent 4 }}
rules:
  {{- $rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: temper:{{ $root.Release.Namespace }}:{{ $component }}
  labels:
    {{- $labels | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "temper:{{ $root.Release.Namespace }}:{{ $component }}"}
{{ $subject }}
{{- end }}
{{- range .root.Values.namespaces }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: temper-{{ $component }}
  namespace: {{ . }}
  labels:
    {{- $labels | nindent 4 }}
rules:
  {{- $rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: temper-{{ $component }}
  namespace: {{ . }}
  labels:
    {{- $labels | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: temper-{{ $component }}}
{{ $subject }}
{{- end }}
{{- end }}

{{/* Rights in the release's namespace; takes root, component, rules. */}}
{{- define "temper.ownRights" -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: temper-{{ .component }}-release
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "temper.componentLabels" . | nindent 4 }}
rules:
  {{- .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: temper-{{ .component }}-release
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "temper.componentLabels" . | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: temper-{{ .component }}-release}
subjects:
  - {kind: ServiceAccount, name: temper-{{ .component }}, namespace: {{ .root.Release.Namespace }}}
{{- end }}

{{/* Rights to cluster-scoped objects, in either mode; takes root, component, rules. */}}
{{- define "temper.clusterRights" -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: temper:{{ .root.Release.Namespace }}:{{ .component }}-cluster
  labels:
    {{- include "temper.componentLabels" . | nindent 4 }}
rules:
  {{- .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: temper:{{ .root.Release.Namespace }}:{{ .component }}-cluster
  labels:
    {{- include "temper.componentLabels" . | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "temper:{{ .root.Release.Namespace }}:{{ .component }}-cluster"}
subjects:
  - {kind: ServiceAccount, name: temper-{{ .component }}, namespace: {{ .root.Release.Namespace }}}
{{- end }}

{{- define "temper.serviceAccount" -}}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: temper-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "temper.componentLabels" . | nindent 4 }}
automountServiceAccountToken: false
{{- end }}

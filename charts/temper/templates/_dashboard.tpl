{{/* The panels of the Grafana dashboard, by row. $namespace is a variable of the dashboard. */}}
{{- define "temper.dashboardRows" -}}
- title: Agents
  panels:
    - {title: Agents by state, unit: short, expr: 'max by (ready, reason) (temper_agents{namespace="$namespace"})', legend: "{{ "{{ready}} {{reason}}" }}"}
    - {title: Pods by state, unit: short, expr: 'max by (kind, state) (temper_pods{namespace="$namespace"})', legend: "{{ "{{kind}} {{state}}" }}"}
    - {title: Time until an agent is Ready (p95), unit: s, expr: 'histogram_quantile(0.95, sum by (le, path) (rate(temper_agent_ready_seconds_bucket{namespace="$namespace"}[10m])))', legend: "{{ "{{path}}" }}"}
    - {title: Claims of warm pods, unit: ops, expr: 'sum by (outcome) (rate(temper_pool_claims_total{namespace="$namespace"}[5m]))', legend: "{{ "{{outcome}}" }}"}
- title: Messages
  panels:
    - {title: Messages by outcome, unit: ops, expr: 'sum by (outcome) (rate(temper_messages_total{namespace="$namespace"}[5m]))', legend: "{{ "{{outcome}}" }}"}
    - {title: Wait for an agent (p95), unit: s, expr: 'histogram_quantile(0.95, sum by (le) (rate(temper_message_wait_seconds_bucket{namespace="$namespace"}[10m])))', legend: wait}
    - {title: Message to answer (p95), unit: s, expr: 'histogram_quantile(0.95, sum by (le) (rate(temper_message_duration_seconds_bucket{namespace="$namespace"}[10m])))', legend: answer}
    - {title: Redeliveries and dead letters, unit: short, expr: 'sum by (reason) (increase(temper_redeliveries_total{namespace="$namespace"}[1h])) or max(temper_dead_letters{namespace="$namespace"})', legend: "{{ "{{reason}}" }}"}
- title: Models
  panels:
    - {title: Calls by outcome, unit: ops, expr: 'sum by (provider, outcome) (rate(temper_model_requests_total{namespace="$namespace"}[5m]))', legend: "{{ "{{provider}} {{outcome}}" }}"}
    - {title: First event of an answer (p95), unit: s, expr: 'histogram_quantile(0.95, sum by (le, model) (rate(temper_model_first_event_seconds_bucket{namespace="$namespace"}[10m])))', legend: "{{ "{{model}}" }}"}
    - {title: Tokens, unit: short, expr: 'sum by (model, direction) (rate(temper_model_tokens_total{namespace="$namespace"}[5m]))', legend: "{{ "{{model}} {{direction}}" }}"}
    - {title: Cost per hour, unit: currencyUSD, expr: 'sum by (model) (rate(temper_model_cost_dollars_total{namespace="$namespace"}[1h])) * 3600', legend: "{{ "{{model}}" }}"}
- title: Tools and limits
  panels:
    - {title: Reviews of forged tools, unit: ops, expr: 'sum by (outcome) (rate(temper_forge_reviews_total{namespace="$namespace"}[15m]))', legend: "{{ "{{outcome}}" }}"}
    - {title: Calls denied by quotas, unit: ops, expr: 'sum by (scope, quota) (rate(temper_quota_denials_total{namespace="$namespace"}[5m]))', legend: "{{ "{{scope}} {{quota}}" }}"}
    - {title: Gateway errors, unit: ops, expr: 'sum by (code) (rate(temper_http_errors_total{namespace="$namespace"}[5m]))', legend: "{{ "{{code}}" }}"}
    - {title: Refused connections, unit: ops, expr: 'sum by (reason) (rate(temper_connections_refused_total{namespace="$namespace"}[5m]))', legend: "{{ "{{reason}}" }}"}
- title: NATS
  panels:
    - {title: Storage used, unit: percentunit, expr: 'max by (stream) (temper_nats_stream_bytes{namespace="$namespace"}) / max by (stream) (temper_nats_stream_max_bytes{namespace="$namespace"})', legend: "{{ "{{stream}}" }}"}
    - {title: Oldest waiting message, unit: s, expr: 'max(temper_inbox_oldest_seconds{namespace="$namespace"})', legend: age}
    - {title: Servers, unit: short, expr: 'max by (server) (temper_nats_server_up{namespace="$namespace"})', legend: "{{ "{{server}}" }}"}
    - {title: Request duration (p95), unit: s, expr: 'histogram_quantile(0.95, sum by (le, operation) (rate(temper_nats_request_duration_seconds_bucket{namespace="$namespace"}[10m])))', legend: "{{ "{{operation}}" }}"}
- title: Operator
  panels:
    - {title: Queue depth, unit: short, expr: 'max by (name) (workqueue_depth{namespace="$namespace"})', legend: "{{ "{{name}}" }}"}
    - {title: Reconciles by result, unit: ops, expr: 'sum by (controller, result) (rate(controller_runtime_reconcile_total{namespace="$namespace"}[5m]))', legend: "{{ "{{controller}} {{result}}" }}"}
    - {title: Writes to the API server, unit: ops, expr: 'sum by (resource, verb) (rate(temper_writes_total{namespace="$namespace"}[5m]))', legend: "{{ "{{resource}} {{verb}}" }}"}
    - {title: Resident memory, unit: bytes, expr: 'max by (pod) (process_resident_memory_bytes{namespace="$namespace"})', legend: "{{ "{{pod}}" }}"}
{{- end }}

{{/* The dashboard in Grafana's JSON model: four panels side by side per row. */}}
{{- define "temper.dashboard" -}}
{{- $panels := list -}}
{{- $source := dict "type" "prometheus" "uid" "${datasource}" -}}
{{- range $row, $group := include "temper.dashboardRows" . | fromYamlArray -}}
{{- $top := mul $row 9 -}}
{{- $panels = append $panels (dict "id" (add 1 (mul $row 5)) "type" "row" "title" $group.title "collapsed" false "panels" list "gridPos" (dict "h" 1 "w" 24 "x" 0 "y" $top)) -}}
{{- range $column, $panel := $group.panels -}}
{{- $target := dict "refId" "A" "expr" $panel.expr "legendFormat" $panel.legend -}}
{{- $position := dict "h" 8 "w" 6 "x" (mul $column 6) "y" (add $top 1) -}}
{{- $defaults := dict "defaults" (dict "unit" $panel.unit "min" 0) "overrides" list -}}
{{- $panels = append $panels (dict "id" (add 2 (mul $row 5) $column) "type" "timeseries" "title" $panel.title "datasource" $source "gridPos" $position "fieldConfig" $defaults "targets" (list $target)) -}}
{{- end -}}
{{- end -}}
{{- $sources := dict "name" "datasource" "type" "datasource" "query" "prometheus" "label" "Data source" -}}
{{- $namespaces := dict "name" "namespace" "type" "query" "label" "Release namespace" "datasource" $source "query" "label_values(temper_build_info, namespace)" "refresh" 2 "current" (dict "text" .Release.Namespace "value" .Release.Namespace) -}}
{{- dict "uid" "temper" "title" "Temper" "tags" (list "temper") "schemaVersion" 39 "editable" true "refresh" "30s" "time" (dict "from" "now-6h" "to" "now") "templating" (dict "list" (list $sources $namespaces)) "panels" $panels | toJson -}}
{{- end }}

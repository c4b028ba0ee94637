import { METRICS } from '../kube/metrics.ts';
import type { MetricTable } from '../telemetry/metrics.ts';
import { GATEWAY_METRICS, OPERATOR_METRICS } from '../telemetry/temper-metrics.ts';

const NOTICE =
  '<!-- Made by make generate from src/telemetry/temper-metrics.ts and src/kube/metrics.ts; do not edit. -->';

const INTRO = `Operator and gateway serve \`/metrics\` in Prometheus's text format on port 9090, beside \`/healthz\` and \`/readyz\`. The chart's \`networkPolicies.metricsFrom\` says who may scrape it; the headless Services \`temper-operator-metrics\` and \`temper-gateway-metrics\` name each pod to [Prometheus](../../manifests/prometheus/scrape-config.yaml). Durations are in seconds. Values of labels are few: enums, error codes, patterns of routes and names of the configuration; never an agent, a session, a tool or a text somebody else chose. A model or provider the configuration does not name is \`other\`. Agent pods serve no metrics: what they do is counted where it arrives.

Both roles show the usual \`process_*\` and \`nodejs_*\` metrics of their process too.`;

/** The page of metrics. */
export function metricsPage(): string {
  const parts: readonly (readonly [string, MetricTable])[] = [
    ['Gateway', GATEWAY_METRICS],
    ['Operator', OPERATOR_METRICS],
    ['The runtime of controllers', METRICS],
  ];
  const sections = parts.map(([title, table]) => `## ${title}\n\n${NOTES[title] ?? ''}${tableOf(table)}`);
  return `${[NOTICE, '# Metrics', INTRO, ...sections].join('\n\n')}\n`;
}

const NOTES: Readonly<Record<string, string>> = {
  'The runtime of controllers':
    'Of the operator; the gateway shows those of requests and reflectors. Names are those of controller-runtime and client-go, so dashboards made for them show this runtime too.\n\n',
};

function tableOf(table: MetricTable): string {
  const rows = Object.entries(table).map(([name, { type, labels, help }]) => {
    const shown = labels.map((label) => `\`${label}\``).join(', ');
    return `| \`${name}\` | ${type} | ${shown} | ${help.replaceAll('|', '\\|')} |`;
  });
  return ['| metric | type | labels | meaning |', '|---|---|---|---|', ...rows].join('\n');
}

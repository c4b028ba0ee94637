interface Match {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

const NOT_DELETED: Match = { key: '.metadata.deletionTimestamp', operator: 'DoesNotExist' };
const readyIs = (operator: string): Match => ({
  key: '.status.conditions.[] | select( .type == "Ready" ) | .status',
  operator,
  values: ['True'],
});

/** The kwok stages of fake nodes and pods, without delays. */
export function stages(): object[] {
  return [
    nodeStage(),
    stage('ready', [NOT_DELETED, readyIs('NotIn')], { statusTemplate: READY }),
    stage('removed', [{ ...NOT_DELETED, operator: 'Exists' }], { delete: true }),
  ];
}

function stage(name: string, matchExpressions: readonly Match[], next: object): object {
  return stageOf('Pod', name, matchExpressions, next);
}

function stageOf(kind: string, name: string, matchExpressions: readonly Match[], next: object): object {
  const spec = { resourceRef: { apiGroup: 'v1', kind }, selector: { matchExpressions }, next };
  return { apiVersion: 'kwok.x-k8s.io/v1alpha1', kind: 'Stage', metadata: { name }, spec };
}

function nodeStage(): object {
  const times = 'lastHeartbeatTime: {{ Now | Quote }}, lastTransitionTime: {{ Now | Quote }}';
  const ready = `{type: Ready, status: "True", reason: KubeletReady, message: fake, ${times}}`;
  return stageOf('Node', 'node-ready', [readyIs('NotIn')], { statusTemplate: `conditions: [${ready}]\n` });
}

/** The status that a kubelet reports. Warm pods are ready before they have an agent, like real ones. */
const READY = [
  'phase: Running',
  'startTime: {{ Now | Quote }}',
  '{{ $address := PodIPWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace }}',
  'podIP: {{ $address }}',
  'podIPs: [{ip: {{ $address }}}]',
  'conditions:',
  ...['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'].map(
    (type) => `- {type: ${type}, status: "True", lastTransitionTime: {{ Now | Quote }}}`,
  ),
  'containerStatuses:',
  '{{ range .spec.containers }}',
  '- {name: {{ .name | Quote }}, image: {{ .image | Quote }}, ready: true, restartCount: 0, state: {running: {startedAt: {{ Now | Quote }}}}}',
  '{{ end }}',
  '',
].join('\n');

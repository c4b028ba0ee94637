import { LABELS } from '../../src/api/cluster.ts';

/** The sandbox class whose warm pods behave as real ones do: Ready only once they have an agent. */
export const PATIENT_CLASS = 'patient';

interface Match {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

const LIVES: Match = { key: '.metadata.deletionTimestamp', operator: 'DoesNotExist' };
const PATIENT: Match = {
  key: `.metadata.labels["${LABELS.sandboxClass}"]`,
  operator: 'In',
  values: [PATIENT_CLASS],
};
const IMPATIENT: Match = { ...PATIENT, operator: 'NotIn' };
const TAKEN: Match = { key: `.metadata.labels["${LABELS.agentUid}"]`, operator: 'Exists' };
const FREE: Match = { ...TAKEN, operator: 'DoesNotExist' };
const readyIs = (operator: string): Match => ({
  key: '.status.conditions.[] | select( .type == "Ready" ) | .status',
  operator,
  values: ['True'],
});
const PENDING: Match = { key: '.status.phase', operator: 'In', values: ['Pending'] };

/** What becomes of fake nodes and pods, all of it without delay. */
export function stages(): object[] {
  return [
    nodeStage(),
    stage('ready', [LIVES, IMPATIENT, readyIs('NotIn')], { statusTemplate: statusOf(true) }),
    stage('waits-for-an-agent', [LIVES, PATIENT, FREE, PENDING], { statusTemplate: statusOf(false) }),
    stage('has-an-agent', [LIVES, PATIENT, TAKEN, readyIs('NotIn')], { statusTemplate: statusOf(true) }),
    stage('removed', [{ ...LIVES, operator: 'Exists' }], { delete: true }),
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

/** As a kubelet reports it. */
function statusOf(isReady: boolean): string {
  const conditions = ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'].map((type) => {
    const status = isReady || !type.endsWith('Ready') ? 'True' : 'False';
    return `- {type: ${type}, status: "${status}", lastTransitionTime: {{ Now | Quote }}}`;
  });
  return [
    'phase: Running',
    'startTime: {{ Now | Quote }}',
    'podIP: 10.0.0.1',
    'podIPs: [{ip: 10.0.0.1}]',
    'conditions:',
    ...conditions,
    'containerStatuses:',
    '{{ range .spec.containers }}',
    `- {name: {{ .name | Quote }}, image: {{ .image | Quote }}, ready: ${isReady}, restartCount: 0, state: {running: {startedAt: {{ Now | Quote }}}}}`,
    '{{ end }}',
    '',
  ].join('\n');
}

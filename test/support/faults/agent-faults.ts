import type { ResourceType } from '../../../src/kube/client/kube-client.ts';
import { podName } from '../../../src/operator/pods/pod-name.ts';
import { TYPES } from '../../../src/operator/kube/types.ts';
import {
  type AgentFault,
  applyAgent,
  applyAgentWithPodStatus,
  patchAgent,
  patchPolicy,
  podWithContainer,
  createObject,
  reportRuntimeState,
  namespaceSelector,
  reportPodStatus,
  waitUntilPodsDenied,
  deleteObject,
  waitUntilRunning,
  resumeKubelet,
} from './fault-context.ts';

import { buildAgent, buildTrustPolicy, readyReason } from '../builders.ts';
import { pollValue } from '../poll.ts';
import { NEVER_ABORTED } from '../stubs.ts';

const resourceType = (group: string, plural: string, kind: string, namespaced: boolean): ResourceType => ({
  group,
  version: 'v1',
  plural,
  kind,
  namespaced,
});
const LIMIT_RANGES = resourceType('', 'limitranges', 'LimitRange', true);
const QUOTAS = resourceType('', 'resourcequotas', 'ResourceQuota', true);
const PRIORITIES = resourceType('scheduling.k8s.io', 'priorityclasses', 'PriorityClass', false);
const RUNTIMES = resourceType('node.k8s.io', 'runtimeclasses', 'RuntimeClass', false);
const WEBHOOKS = resourceType(
  'admissionregistration.k8s.io',
  'validatingwebhookconfigurations',
  'ValidatingWebhookConfiguration',
  false,
);
const POLICIES = TYPES.admissionPolicies;
const BINDINGS = TYPES.admissionBindings;
const PRIORITY = {
  apiVersion: 'scheduling.k8s.io/v1',
  kind: 'PriorityClass',
  metadata: { name: 'temper-agent' },
  value: 0,
};
const RETRY_MESSAGE = /the operator retries within five minutes/;

const VALIDATION_FAULTS: readonly AgentFault[] = [
  {
    cause: 'its policy does not exist',
    id: 'policy',
    reason: 'TrustPolicyNotFound',
    messages: [
      /TrustPolicy "standard" does not exist in namespace "fault-policy"/,
      /create it or change spec\.trustPolicyRef/,
    ],
    inject: ({ apiServer, namespace }) => apiServer.apply(buildAgent(namespace, 'analyst')),
    clear: ({ apiServer, namespace }) => apiServer.apply(buildTrustPolicy(namespace)),
  },
  {
    cause: 'its grants exceed its policy',
    id: 'grant',
    reason: 'GrantDenied',
    messages: [
      /grants\.network "example\.com" exceeds policy "standard"/,
      /egress\.allow is empty/,
      /narrow the grant or extend the policy/,
    ],
    inject: (context) => applyAgent(context, { grants: { network: ['example.com'] } }),
    clear: async (context) => void (await patchPolicy(context, { egress: { allow: ['example.com'] } })),
  },
  {
    cause: 'its policy has no free agent quota',
    id: 'agents',
    reason: 'AgentQuotaExceeded',
    messages: [/TrustPolicy "standard" allows 1/, /delete one or raise spec\.quotas\.agents/],
    inject: async (context) => {
      const { apiServer, namespace } = context;
      await apiServer.apply(buildTrustPolicy(namespace, { quotas: { agents: 1 } }));
      await apiServer.apply(buildAgent(namespace, 'older'));
      // The operator orders agents by creationTimestamp, which has a resolution of one second.
      const created = async () =>
        Date.now() - Date.parse((await apiServer.getAgent(namespace, 'older')).metadata.creationTimestamp);
      await pollValue('one second between the two agents', created, (age) => age > 1_000);
      await apiServer.apply(buildAgent(namespace, 'analyst'));
    },
    clear: async (context) => void (await patchPolicy(context, { quotas: { agents: 2 } })),
  },
  {
    cause: 'its sandbox class does not exist',
    id: 'class',
    reason: 'InvalidSpec',
    messages: [/spec\.sandbox\.class: sandbox class "fast" does not exist/, /use one of "standard", "gvisor"/],
    inject: (context) => applyAgent(context, { sandbox: { class: 'fast' } }),
    clear: async (context) => void (await patchAgent(context, { sandbox: { class: 'standard' } })),
  },
  {
    cause: 'its policy has an invalid quantity',
    id: 'unreadable',
    reason: 'InvalidSpec',
    messages: [
      /TrustPolicy "standard" cannot be used: spec\.quotas\.memory: "9999999999Ti" is not a number of bytes/,
      /write bytes such as/,
    ],
    inject: (context) => applyAgent(context, {}, { quotas: { memory: '9999999999Ti' } }),
    clear: async (context) => void (await patchPolicy(context, { quotas: { memory: '16Gi' } })),
  },
  {
    cause: 'its policy allows none of its models',
    id: 'model',
    condition: 'ModelAvailable',
    reason: 'ModelDenied',
    messages: [/openai\/gpt-4o-mini/, /policy "standard"/, /models\.allow/],
    inject: (context) => applyAgent(context, {}, { models: { allow: ['anthropic/*'] } }),
    clear: async (context) => void (await patchPolicy(context, { models: { allow: ['openai/*'] } })),
  },
  {
    cause: 'it is suspended',
    id: 'suspended',
    condition: 'Active',
    reason: 'Suspended',
    messages: [/suspended by spec\.suspend; set it to false/],
    inject: (context) => applyAgent(context, { suspend: true }),
    clear: async (context) => void (await patchAgent(context, { suspend: false })),
  },
  {
    cause: 'the kill switch of its policy is on',
    id: 'switch',
    condition: 'Active',
    reason: 'Suspended',
    messages: [/kill switch of TrustPolicy "standard"; set its spec\.suspend to false/],
    inject: (context) => applyAgent(context, {}, { suspend: true }),
    clear: async (context) => void (await patchPolicy(context, { suspend: false })),
  },
];

const POD_CREATION_FAULTS: readonly AgentFault[] = [
  {
    cause: 'the ResourceQuota of the namespace is exhausted',
    id: 'quota',
    reason: 'PodRejected',
    messages: [/exceeded quota: team/, /limited: pods=0/, /fix the cause/, RETRY_MESSAGE],
    inject: async (context) => {
      const { apiServer, namespace } = context;
      const metadata = { name: 'team', namespace };
      await createObject(apiServer, QUOTAS, {
        apiVersion: 'v1',
        kind: 'ResourceQuota',
        metadata,
        spec: { hard: { pods: '0' } },
      });
      await applyAgent(context);
    },
    clear: async (context) => void (await deleteObject(context, QUOTAS, 'team', context.namespace)),
  },
  {
    cause: 'a LimitRange allows less than its pod requests',
    id: 'limits',
    reason: 'PodRejected',
    messages: [/maximum memory usage per Container is 64Mi/, /fix the cause/],
    inject: async (context) => {
      const { apiServer, namespace } = context;
      const limits = [{ type: 'Container', max: { memory: '64Mi' } }];
      const metadata = { name: 'team', namespace };
      await createObject(apiServer, LIMIT_RANGES, { apiVersion: 'v1', kind: 'LimitRange', metadata, spec: { limits } });
      await applyAgent(context);
    },
    clear: async (context) => void (await deleteObject(context, LIMIT_RANGES, 'team', context.namespace)),
  },
  {
    cause: 'an admission policy denies its pod',
    id: 'admission',
    reason: 'PodRejected',
    messages: [/ValidatingAdmissionPolicy 'cost-center'/, /every pod names its cost center/, /fix the cause/],
    inject: async (context) => {
      const { apiServer, namespace } = context;
      const apiVersion = 'admissionregistration.k8s.io/v1';
      const rule = { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] };
      const spec = {
        matchConstraints: { namespaceSelector: namespaceSelector(namespace), resourceRules: [rule] },
        validations: [{ expression: 'false', message: 'every pod names its cost center' }],
      };
      const metadata = { name: 'cost-center' };
      await createObject(apiServer, POLICIES, { apiVersion, kind: 'ValidatingAdmissionPolicy', metadata, spec });
      const binding = { policyName: 'cost-center', validationActions: ['Deny'] };
      await createObject(apiServer, BINDINGS, {
        apiVersion,
        kind: 'ValidatingAdmissionPolicyBinding',
        metadata,
        spec: binding,
      });
      await waitUntilPodsDenied(context);
      await applyAgent(context);
    },
    clear: async (context) => {
      await deleteObject(context, BINDINGS, 'cost-center');
      await deleteObject(context, POLICIES, 'cost-center');
    },
  },
  {
    cause: 'a fail-closed admission webhook is unreachable',
    id: 'webhook',
    reason: 'PodRejected',
    messages: [/failed calling webhook "pods\.test\.example"/, /fix the cause/, RETRY_MESSAGE],
    inject: async (context) => {
      const { apiServer, namespace } = context;
      const webhook = {
        name: 'pods.test.example',
        clientConfig: { url: 'https://127.0.0.1:1/' },
        rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
        namespaceSelector: namespaceSelector(namespace),
        failurePolicy: 'Fail',
        sideEffects: 'None',
        timeoutSeconds: 1,
        admissionReviewVersions: ['v1'],
      };
      const object = { metadata: { name: 'unreachable' }, webhooks: [webhook] };
      await createObject(apiServer, WEBHOOKS, {
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: 'ValidatingWebhookConfiguration',
        ...object,
      });
      await waitUntilPodsDenied(context);
      await applyAgent(context);
    },
    clear: async (context) => void (await deleteObject(context, WEBHOOKS, 'unreachable')),
  },
  {
    cause: 'the PriorityClass of agents is missing',
    id: 'priority',
    isClusterWide: true,
    reason: 'PodRejected',
    messages: [/no PriorityClass with name temper-agent was found/, /fix the cause/],
    inject: async (context) => {
      await deleteObject(context, PRIORITIES, 'temper-agent');
      await applyAgent(context);
    },
    clear: async ({ apiServer }) => void (await createObject(apiServer, PRIORITIES, PRIORITY)),
  },
  {
    cause: 'the RuntimeClass of its sandbox class is missing',
    id: 'runtime',
    reason: 'PodRejected',
    messages: [/RuntimeClass "gvisor" not found/, /fix the cause/],
    inject: (context) => applyAgent(context, { sandbox: { class: 'gvisor' } }),
    clear: async ({ apiServer }) => {
      const object = {
        apiVersion: 'node.k8s.io/v1',
        kind: 'RuntimeClass',
        metadata: { name: 'gvisor' },
        handler: 'runsc',
      };
      await createObject(apiServer, RUNTIMES, object);
    },
  },
  {
    cause: 'another user owns a pod with its pod name',
    id: 'conflict',
    reason: 'PodNameConflict',
    messages: [
      /pod "analyst-\w+" exists and does not belong to the operator/,
      /kubectl delete pod analyst-\w+ --namespace fault-conflict/,
    ],
    inject: async (context) => {
      const { apiServer, namespace } = context;
      await applyAgent(context, { suspend: true });
      const { metadata } = await apiServer.waitForAgent(namespace, 'analyst', 'is suspended', (agent) => {
        return readyReason(agent) === 'Suspended';
      });
      const name = podName({ name: 'analyst', uid: metadata.uid }, undefined);
      await pollValue(
        'ServiceAccount default',
        () => apiServer.client.get(TYPES.serviceAccounts, { namespace, name: 'default' }, NEVER_ABORTED),
        (found) => found !== undefined,
      );
      const spec = { containers: [{ name: 'x', image: 'x' }] };
      await createObject(apiServer, TYPES.pods, { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace }, spec });
      await patchAgent(context, { suspend: false });
    },
    clear: async ({ apiServer, namespace }) => {
      for (const { metadata } of await apiServer.listPods(namespace)) {
        await apiServer.client.delete(
          TYPES.pods,
          { namespace, name: metadata.name },
          { gracePeriodSeconds: 0 },
          NEVER_ABORTED,
        );
      }
    },
  },
];

const POD_STATUS_FAULTS: readonly AgentFault[] = [
  {
    cause: 'no node has capacity for its pod',
    id: 'capacity',
    reason: 'Unschedulable',
    messages: [
      /pod "analyst-\w+" fits no node: 0\/3 nodes are available: 3 Insufficient cpu/,
      /add capacity or lower spec\.sandbox\.resources/,
    ],
    inject: async (context) => {
      const message = '0/3 nodes are available: 3 Insufficient cpu.';
      await applyAgentWithPodStatus(context, {
        conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }],
      });
    },
    clear: resumeKubelet,
  },
  {
    cause: 'an image cannot be pulled',
    id: 'image',
    reason: 'ImagePullFailed',
    messages: [
      /container "agent": Back-off pulling image "temper:tset"/,
      /correct the image in the Helm values, or the access to the registry/,
    ],
    inject: async (context) => {
      const waiting = { reason: 'ImagePullBackOff', message: 'Back-off pulling image "temper:tset"' };
      await applyAgentWithPodStatus(context, { ...podWithContainer({ state: { waiting } }), phase: 'Pending' });
    },
    clear: resumeKubelet,
  },
  {
    cause: 'a container exits repeatedly',
    id: 'crash',
    reason: 'PodCrashLooping',
    messages: [
      /container "agent" exited 1 4 times, last: TEMPER_CONFIGURATION_INVALID/,
      /see kubectl logs analyst-\w+ --namespace fault-crash --all-containers --previous/,
    ],
    inject: async (context) => {
      const message = 'TEMPER_CONFIGURATION_INVALID: endpoints: the file is not there\n';
      const terminated = { exitCode: 1, reason: 'Error', message, startedAt: null, finishedAt: null };
      const state = { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 40s restarting failed container' } };
      await applyAgentWithPodStatus(context, podWithContainer({ restartCount: 4, state, lastState: { terminated } }));
    },
    clear: resumeKubelet,
  },
  {
    cause: 'its pods fail one after the other',
    id: 'evicted',
    reason: 'PodCrashLooping',
    messages: [
      /2 pods failed recently, last: Evicted: The node was low on resource: memory/,
      /the next pod is created at \d\d:\d\d:\d\d UTC/,
      /kubectl get events --namespace fault-evicted/,
    ],
    inject: async (context) => {
      const evicted = { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' };
      const first = await applyAgentWithPodStatus(context, evicted);
      await reportPodStatus(context, evicted, first);
    },
    clear: resumeKubelet,
  },
];

const DEPENDENCY_FAULTS: readonly AgentFault[] = [
  {
    cause: 'its token quota is exhausted',
    id: 'budget',
    condition: 'BudgetAvailable',
    reason: 'TokenQuotaExceeded',
    messages: [/100,000 of 100,000 tokens this hour; resumes 13:00 UTC; raise spec\.quotas\.tokensPerHour/],
    inject: (context) =>
      reportRuntimeState(context, {
        budget: {
          type: 'BudgetAvailable',
          status: 'False',
          reason: 'TokenQuotaExceeded',
          message: '100,000 of 100,000 tokens this hour; resumes 13:00 UTC; raise spec.quotas.tokensPerHour',
        },
      }),
    clear: async (context) => {
      const { metadata } = await context.apiServer.getAgent(context.namespace, 'analyst');
      const message = 'no quota is exhausted';
      context.activity.setRuntimeState(metadata.uid, {
        budget: { type: 'BudgetAvailable', status: 'True', reason: 'WithinBudget', message },
      });
    },
  },
  {
    cause: 'no pod reports its work',
    id: 'heartbeat',
    condition: 'Responsive',
    reason: 'HeartbeatMissed',
    messages: [/no pod of the agent took one or reported/, /log of the pod/],
    inject: (context) =>
      reportRuntimeState(context, {
        heartbeat: {
          type: 'Responsive',
          status: 'False',
          reason: 'HeartbeatMissed',
          message: 'messages wait, and no pod of the agent took one or reported its work; see the log of the pod',
        },
      }),
    clear: async (context) => {
      const { metadata } = await context.apiServer.getAgent(context.namespace, 'analyst');
      context.activity.setRuntimeState(metadata.uid, { heartbeat: 'Reported' });
    },
  },
  {
    cause: 'the provider rejects the key of its model',
    id: 'key',
    condition: 'ModelAvailable',
    reason: 'ModelUnauthorized',
    messages: [/provider "openai" answered 401/, /rotate it/],
    inject: (context) =>
      reportRuntimeState(context, {
        model: {
          type: 'ModelAvailable',
          status: 'False',
          reason: 'ModelUnauthorized',
          message: 'provider "openai" answered 401 for secret "openai-key"; rotate it',
        },
      }),
    clear: async (context) => {
      const { metadata } = await context.apiServer.getAgent(context.namespace, 'analyst');
      const message = 'openai/gpt-4o-mini answers';
      context.activity.setRuntimeState(metadata.uid, {
        model: { type: 'ModelAvailable', status: 'True', reason: 'ModelReady', message },
      });
    },
  },
  {
    cause: 'NATS is unreachable',
    id: 'bus',
    isClusterWide: true,
    reason: 'BusUnavailable',
    messages: [/NATS unreachable since \d{4}-/, /messages wait/, /see the NATS pods and the operator log/],
    inject: async (context) => {
      await applyAgent(context);
      await waitUntilRunning(context);
      context.activity.setNatsUnavailableSince(new Date(Date.now() - 120_000));
    },
    clear: ({ activity }) => Promise.resolve(activity.setNatsUnavailableSince(undefined)),
  },
];

export const AGENT_FAULTS: readonly AgentFault[] = [
  ...VALIDATION_FAULTS,
  ...POD_CREATION_FAULTS,
  ...POD_STATUS_FAULTS,
  ...DEPENDENCY_FAULTS,
];

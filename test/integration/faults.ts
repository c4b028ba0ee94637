import type { ResourceType } from '../../src/kube/client.ts';
import { podName } from '../../src/operator/agent/pod-name.ts';
import { TYPES } from '../../src/operator/kube-types.ts';
import {
  type Fault,
  begin,
  beginWith,
  change,
  changePolicy,
  containers,
  create,
  factSays,
  inNamespace,
  podSays,
  refusesPods,
  remove,
  running,
  tended,
} from './fault-stage.ts';
import { agentOf, eventually, policyOf, readyReason } from './operator-world.ts';

const never = new AbortController().signal;

const type = (group: string, plural: string, kind: string, namespaced: boolean): ResourceType => ({
  group,
  version: 'v1',
  plural,
  kind,
  namespaced,
});
const LIMIT_RANGES = type('', 'limitranges', 'LimitRange', true);
const QUOTAS = type('', 'resourcequotas', 'ResourceQuota', true);
const PRIORITIES = type('scheduling.k8s.io', 'priorityclasses', 'PriorityClass', false);
const RUNTIMES = type('node.k8s.io', 'runtimeclasses', 'RuntimeClass', false);
const WEBHOOKS = type(
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
const AGAIN = /it is tried again within five minutes/;

const REFUSED_BY_RULES: readonly Fault[] = [
  {
    what: 'its policy does not exist',
    id: 'policy',
    reason: 'TrustPolicyNotFound',
    says: [
      /TrustPolicy "standard" does not exist in namespace "fault-policy"/,
      /create it or change spec\.trustPolicyRef/,
    ],
    make: ({ world, namespace }) => world.apply(agentOf(namespace, 'analyst')),
    end: ({ world, namespace }) => world.apply(policyOf(namespace)),
  },
  {
    what: 'it is granted more than its policy allows',
    id: 'grant',
    reason: 'GrantDenied',
    says: [
      /grants\.network "example\.com" exceeds policy "standard"/,
      /egress\.allow is empty/,
      /narrow it or raise the policy/,
    ],
    make: (stage) => begin(stage, { grants: { network: ['example.com'] } }),
    end: async (stage) => void (await changePolicy(stage, { egress: { allow: ['example.com'] } })),
  },
  {
    what: 'its policy has as many agents as it allows',
    id: 'agents',
    reason: 'AgentQuotaExceeded',
    says: [/TrustPolicy "standard" allows 1/, /delete one or raise spec\.quotas\.agents/],
    make: async (stage) => {
      const { world, namespace } = stage;
      await world.apply(policyOf(namespace, { quotas: { agents: 1 } }));
      await world.apply(agentOf(namespace, 'older'));
      // Ages are told apart by the second.
      const created = async () =>
        Date.now() - Date.parse((await world.agent(namespace, 'older')).metadata.creationTimestamp);
      await eventually(created, (age) => age > 1_000, 'a second between two agents');
      await world.apply(agentOf(namespace, 'analyst'));
    },
    end: async (stage) => void (await changePolicy(stage, { quotas: { agents: 2 } })),
  },
  {
    what: 'it asks for a sandbox class that is not offered',
    id: 'class',
    reason: 'InvalidSpec',
    says: [/spec\.sandbox\.class: there is no sandbox class "fast"/, /use one of "standard", "gvisor"/],
    make: (stage) => begin(stage, { sandbox: { class: 'fast' } }),
    end: async (stage) => void (await change(stage, { sandbox: { class: 'standard' } })),
  },
  {
    what: 'its policy cannot be read',
    id: 'unreadable',
    reason: 'InvalidSpec',
    says: [
      /TrustPolicy "standard" cannot be used: spec\.quotas\.memory: "9999999999Ti" is not a number of bytes/,
      /write bytes as in/,
    ],
    make: (stage) => begin(stage, {}, { quotas: { memory: '9999999999Ti' } }),
    end: async (stage) => void (await changePolicy(stage, { quotas: { memory: '16Gi' } })),
  },
  {
    what: 'its policy allows none of its models',
    id: 'model',
    condition: 'ModelAvailable',
    reason: 'ModelDenied',
    says: [/openai\/gpt-4o-mini/, /policy "standard"/, /models\.allow/],
    make: (stage) => begin(stage, {}, { models: { allow: ['anthropic/*'] } }),
    end: async (stage) => void (await changePolicy(stage, { models: { allow: ['openai/*'] } })),
  },
  {
    what: 'it is suspended',
    id: 'suspended',
    condition: 'Active',
    reason: 'Suspended',
    says: [/suspended by spec\.suspend; set it to false/],
    make: (stage) => begin(stage, { suspend: true }),
    end: async (stage) => void (await change(stage, { suspend: false })),
  },
  {
    what: 'the kill switch of its policy is on',
    id: 'switch',
    condition: 'Active',
    reason: 'Suspended',
    says: [/kill switch of TrustPolicy "standard"; set its spec\.suspend to false/],
    make: (stage) => begin(stage, {}, { suspend: true }),
    end: async (stage) => void (await changePolicy(stage, { suspend: false })),
  },
];

const REFUSED_BY_THE_CLUSTER: readonly Fault[] = [
  {
    what: 'a ResourceQuota of the namespace is used up',
    id: 'quota',
    reason: 'PodRejected',
    says: [/exceeded quota: team/, /limited: pods=0/, /change what it names/, AGAIN],
    make: async (stage) => {
      const { world, namespace } = stage;
      const metadata = { name: 'team', namespace };
      await create(world, QUOTAS, { apiVersion: 'v1', kind: 'ResourceQuota', metadata, spec: { hard: { pods: '0' } } });
      await begin(stage);
    },
    end: async (stage) => void (await remove(stage, QUOTAS, 'team', stage.namespace)),
  },
  {
    what: 'a LimitRange allows less than it asks for',
    id: 'limits',
    reason: 'PodRejected',
    says: [/maximum memory usage per Container is 64Mi/, /change what it names/],
    make: async (stage) => {
      const { world, namespace } = stage;
      const limits = [{ type: 'Container', max: { memory: '64Mi' } }];
      const metadata = { name: 'team', namespace };
      await create(world, LIMIT_RANGES, { apiVersion: 'v1', kind: 'LimitRange', metadata, spec: { limits } });
      await begin(stage);
    },
    end: async (stage) => void (await remove(stage, LIMIT_RANGES, 'team', stage.namespace)),
  },
  {
    what: 'an admission policy refuses its pod',
    id: 'admission',
    reason: 'PodRejected',
    says: [/ValidatingAdmissionPolicy 'cost-center'/, /every pod names its cost center/, /change what it names/],
    make: async (stage) => {
      const { world, namespace } = stage;
      const apiVersion = 'admissionregistration.k8s.io/v1';
      const rule = { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] };
      const spec = {
        matchConstraints: { namespaceSelector: inNamespace(namespace), resourceRules: [rule] },
        validations: [{ expression: 'false', message: 'every pod names its cost center' }],
      };
      const metadata = { name: 'cost-center' };
      await create(world, POLICIES, { apiVersion, kind: 'ValidatingAdmissionPolicy', metadata, spec });
      const binding = { policyName: 'cost-center', validationActions: ['Deny'] };
      await create(world, BINDINGS, { apiVersion, kind: 'ValidatingAdmissionPolicyBinding', metadata, spec: binding });
      await refusesPods(stage);
      await begin(stage);
    },
    end: async (stage) => {
      await remove(stage, BINDINGS, 'cost-center');
      await remove(stage, POLICIES, 'cost-center');
    },
  },
  {
    what: 'a webhook that must be asked cannot be reached',
    id: 'webhook',
    reason: 'PodRejected',
    says: [/failed calling webhook "pods\.test\.example"/, /change what it names/, AGAIN],
    make: async (stage) => {
      const { world, namespace } = stage;
      const webhook = {
        name: 'pods.test.example',
        clientConfig: { url: 'https://127.0.0.1:1/' },
        rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
        namespaceSelector: inNamespace(namespace),
        failurePolicy: 'Fail',
        sideEffects: 'None',
        timeoutSeconds: 1,
        admissionReviewVersions: ['v1'],
      };
      const object = { metadata: { name: 'unreachable' }, webhooks: [webhook] };
      await create(world, WEBHOOKS, {
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: 'ValidatingWebhookConfiguration',
        ...object,
      });
      await refusesPods(stage);
      await begin(stage);
    },
    end: async (stage) => void (await remove(stage, WEBHOOKS, 'unreachable')),
  },
  {
    what: 'the PriorityClass of agents is missing',
    id: 'priority',
    reason: 'PodRejected',
    says: [/no PriorityClass with name temper-agent was found/, /change what it names/],
    make: async (stage) => {
      await remove(stage, PRIORITIES, 'temper-agent');
      await begin(stage);
    },
    end: async ({ world }) => void (await create(world, PRIORITIES, PRIORITY)),
  },
  {
    what: 'the RuntimeClass of its sandbox class is missing',
    id: 'runtime',
    reason: 'PodRejected',
    says: [/RuntimeClass "gvisor" not found/, /change what it names/],
    make: (stage) => begin(stage, { sandbox: { class: 'gvisor' } }),
    end: async ({ world }) => {
      const object = {
        apiVersion: 'node.k8s.io/v1',
        kind: 'RuntimeClass',
        metadata: { name: 'gvisor' },
        handler: 'runsc',
      };
      await create(world, RUNTIMES, object);
    },
  },
  {
    what: 'somebody else has a pod of its name',
    id: 'squatter',
    reason: 'PodNameTaken',
    says: [
      /pod "analyst-\w+" exists and is not the operator's/,
      /kubectl delete pod analyst-\w+ --namespace fault-squatter/,
    ],
    make: async (stage) => {
      const { world, namespace } = stage;
      await begin(stage, { suspend: true });
      const { metadata } = await world.agentWith(namespace, 'analyst', 'is suspended', (agent) => {
        return readyReason(agent) === 'Suspended';
      });
      const name = podName({ name: 'analyst', uid: metadata.uid }, undefined);
      await eventually(
        () => world.client.get(TYPES.serviceAccounts, { namespace, name: 'default' }, never),
        (found) => found !== undefined,
        'the default account',
      );
      const spec = { containers: [{ name: 'x', image: 'x' }] };
      await create(world, TYPES.pods, { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace }, spec });
      await change(stage, { suspend: false });
    },
    end: async ({ world, namespace }) => {
      for (const { metadata } of await world.pods(namespace)) {
        await world.client.delete(TYPES.pods, { namespace, name: metadata.name }, { gracePeriodSeconds: 0 }, never);
      }
    },
  },
];

const OF_THE_POD: readonly Fault[] = [
  {
    what: 'no node has room for its pod',
    id: 'room',
    reason: 'Unschedulable',
    says: [
      /pod "analyst-\w+" fits no node: 0\/3 nodes are available: 3 Insufficient cpu/,
      /add room or lower spec\.sandbox\.resources/,
    ],
    make: async (stage) => {
      const message = '0/3 nodes are available: 3 Insufficient cpu.';
      await beginWith(stage, {
        conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }],
      });
    },
    end: tended,
  },
  {
    what: 'an image cannot be pulled',
    id: 'image',
    reason: 'ImagePullFailed',
    says: [
      /container "agent": Back-off pulling image "temper:tset"/,
      /correct the image in the release's values, or the registry's access/,
    ],
    make: async (stage) => {
      const waiting = { reason: 'ImagePullBackOff', message: 'Back-off pulling image "temper:tset"' };
      await beginWith(stage, { ...containers({ state: { waiting } }), phase: 'Pending' });
    },
    end: tended,
  },
  {
    what: 'a container exits again and again',
    id: 'crash',
    reason: 'PodCrashLooping',
    says: [
      /container "agent" exited 1 4 times, last: TEMPER_CONFIGURATION_INVALID/,
      /see kubectl logs analyst-\w+ --namespace fault-crash --all-containers --previous/,
    ],
    make: async (stage) => {
      const message = 'TEMPER_CONFIGURATION_INVALID: doors: the file is not there\n';
      const terminated = { exitCode: 1, reason: 'Error', message, startedAt: null, finishedAt: null };
      const state = { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 40s restarting failed container' } };
      await beginWith(stage, containers({ restartCount: 4, state, lastState: { terminated } }));
    },
    end: tended,
  },
  {
    what: 'its pods end one after the other',
    id: 'evicted',
    reason: 'PodCrashLooping',
    says: [
      /its pods ended 2 times of late, last: Evicted: The node was low on resource: memory/,
      /the next pod is made at \d\d:\d\d:\d\d UTC/,
      /kubectl get events --namespace fault-evicted/,
    ],
    make: async (stage) => {
      const evicted = { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' };
      const first = await beginWith(stage, evicted);
      await podSays(stage, evicted, first);
    },
    end: tended,
  },
];

const FROM_ELSEWHERE: readonly Fault[] = [
  {
    what: 'its tokens are used up',
    id: 'budget',
    condition: 'BudgetAvailable',
    reason: 'TokenQuotaExceeded',
    says: [/100,000 of 100,000 tokens this hour; resumes 13:00 UTC; raise spec\.quotas\.tokensPerHour/],
    make: (stage) =>
      factSays(stage, {
        budget: {
          type: 'BudgetAvailable',
          status: 'False',
          reason: 'TokenQuotaExceeded',
          message: '100,000 of 100,000 tokens this hour; resumes 13:00 UTC; raise spec.quotas.tokensPerHour',
        },
      }),
    end: async (stage) => {
      const { metadata } = await stage.world.agent(stage.namespace, 'analyst');
      const message = 'every quota has room';
      stage.elsewhere.tell(metadata.uid, {
        budget: { type: 'BudgetAvailable', status: 'True', reason: 'WithinBudget', message },
      });
    },
  },
  {
    what: 'the key of its model is refused',
    id: 'key',
    condition: 'ModelAvailable',
    reason: 'ModelUnauthorized',
    says: [/provider "openai" answered 401/, /rotate it/],
    make: (stage) =>
      factSays(stage, {
        model: {
          type: 'ModelAvailable',
          status: 'False',
          reason: 'ModelUnauthorized',
          message: 'provider "openai" answered 401 for secret "openai-key"; rotate it',
        },
      }),
    end: async (stage) => {
      const { metadata } = await stage.world.agent(stage.namespace, 'analyst');
      const message = 'openai/gpt-4o-mini answers';
      stage.elsewhere.tell(metadata.uid, {
        model: { type: 'ModelAvailable', status: 'True', reason: 'ModelReady', message },
      });
    },
  },
  {
    what: 'the bus cannot be reached',
    id: 'bus',
    reason: 'BusUnavailable',
    says: [/NATS unreachable since \d{4}-/, /messages wait/, /see the pods of the bus and the operator's log/],
    make: async (stage) => {
      await begin(stage);
      await running(stage);
      stage.elsewhere.busAwaySince(new Date(Date.now() - 120_000));
    },
    end: ({ elsewhere: from }) => Promise.resolve(from.busAwaySince(undefined)),
  },
];

export const FAULTS: readonly Fault[] = [
  ...REFUSED_BY_RULES,
  ...REFUSED_BY_THE_CLUSTER,
  ...OF_THE_POD,
  ...FROM_ELSEWHERE,
];

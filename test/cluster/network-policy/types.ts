/** The fields of API objects that the enforcer reads. */
export interface Metadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly labels?: Labels;
}

export type Labels = Readonly<Record<string, string>>;

export interface Namespace {
  readonly metadata: Metadata;
}

export interface Pod {
  readonly metadata: Metadata;
  readonly spec: {
    readonly hostNetwork?: boolean;
    readonly containers: readonly { readonly ports?: readonly ContainerPort[] }[];
    readonly initContainers?: readonly { readonly ports?: readonly ContainerPort[] }[];
  };
  readonly status?: { readonly phase?: string; readonly podIP?: string };
}

export interface ContainerPort {
  readonly name?: string;
  readonly containerPort: number;
  readonly protocol?: string;
}

export interface Selector {
  readonly matchLabels?: Labels;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: string;
    readonly values?: readonly string[];
  }[];
}

export interface Peer {
  readonly podSelector?: Selector;
  readonly namespaceSelector?: Selector;
  readonly ipBlock?: { readonly cidr: string; readonly except?: readonly string[] };
}

export interface PolicyPort {
  readonly protocol?: string;
  /** A number or the name of a container's port. */
  readonly port?: number | string;
  readonly endPort?: number;
}

export interface NetworkPolicy {
  readonly metadata: Metadata;
  readonly spec: {
    readonly podSelector?: Selector;
    readonly policyTypes?: readonly string[];
    readonly ingress?: readonly { readonly from?: readonly Peer[]; readonly ports?: readonly PolicyPort[] }[];
    readonly egress?: readonly { readonly to?: readonly Peer[]; readonly ports?: readonly PolicyPort[] }[];
  };
}

/** All inputs of the ruleset. */
export interface PolicyInputs {
  readonly pods: readonly Pod[];
  readonly namespaces: readonly Namespace[];
  readonly policies: readonly NetworkPolicy[];
}

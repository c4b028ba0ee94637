import { ApiError, type KubeClient } from '../../kube/client/kube-client.ts';

/** An object as the fake API server keeps it. */
export type FakeObject = Record<string, unknown> & { metadata: { name: string; resourceVersion?: string } };

/** Objects by name, with the optimistic concurrency of an API server. */
export function fakeObjects(): { client: KubeClient; objects: Map<string, FakeObject> } {
  const objects = new Map<string, FakeObject>();
  const store = (object: FakeObject): FakeObject => {
    const version = Number(objects.get(object.metadata.name)?.metadata.resourceVersion ?? 0) + 1;
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } };
    objects.set(object.metadata.name, stored);
    return stored;
  };
  const client = {
    get: async (_type: unknown, { name }: { name: string }) => objects.get(name),
    async apply(_type: unknown, object: FakeObject) {
      const { name, resourceVersion } = object.metadata;
      if (resourceVersion !== undefined && resourceVersion !== objects.get(name)?.metadata.resourceVersion)
        throw new ApiError(409, 'Conflict', 'it has another version');
      return store(object);
    },
    async create(_type: unknown, object: FakeObject) {
      if (objects.has(object.metadata.name)) throw new ApiError(409, 'AlreadyExists', 'it exists');
      return store(object);
    },
  };
  return { client: client as unknown as KubeClient, objects };
}

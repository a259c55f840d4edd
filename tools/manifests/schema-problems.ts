import { z } from 'zod';
import { type KubernetesObject, title } from './kubernetes-object.ts';

const CORE = 'kubernetes-models';

/**
 * Kinds that the manifests may contain → module of the validator, which is generated from the published
 * OpenAPI documents.
 */
const VALIDATORS: Readonly<Record<string, string>> = {
  'v1/ConfigMap': `${CORE}/v1/ConfigMap`,
  'v1/Namespace': `${CORE}/v1/Namespace`,
  'v1/Service': `${CORE}/v1/Service`,
  'v1/ServiceAccount': `${CORE}/v1/ServiceAccount`,
  'apps/v1/Deployment': `${CORE}/apps/v1/Deployment`,
  'autoscaling/v2/HorizontalPodAutoscaler': `${CORE}/autoscaling/v2/HorizontalPodAutoscaler`,
  'batch/v1/CronJob': `${CORE}/batch/v1/CronJob`,
  'batch/v1/Job': `${CORE}/batch/v1/Job`,
  'networking.k8s.io/v1/Ingress': `${CORE}/networking.k8s.io/v1/Ingress`,
  'networking.k8s.io/v1/NetworkPolicy': `${CORE}/networking.k8s.io/v1/NetworkPolicy`,
  'policy/v1/PodDisruptionBudget': `${CORE}/policy/v1/PodDisruptionBudget`,
  'external-secrets.io/v1/ExternalSecret':
    '@kubernetes-models/external-secrets/external-secrets.io/v1/ExternalSecret',
  'gateway.networking.k8s.io/v1/HTTPRoute':
    '@kubernetes-models/gateway-api/gateway.networking.k8s.io/v1/HTTPRoute',
  'monitoring.coreos.com/v1/PrometheusRule':
    '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PrometheusRule',
  'monitoring.coreos.com/v1/ServiceMonitor':
    '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/ServiceMonitor',
};

interface Model {
  prototype: { validate(this: unknown): void };
}

/**
 * Returns what violates the Kubernetes schemas: unknown kinds and fields, missing fields, wrong types and
 * values.
 */
export async function schemaProblems(objects: readonly KubernetesObject[]): Promise<string[]> {
  const problems = await Promise.all(objects.map((object) => problemsOf(object)));
  return problems.flat();
}

async function problemsOf(object: KubernetesObject): Promise<string[]> {
  const operators = OPERATOR_SCHEMAS[`${object.apiVersion}/${object.kind}`]?.safeParse(object);
  if (operators !== undefined)
    return (operators.error?.issues ?? []).map(
      ({ path, message }) => `${title(object)}: /${path.join('/')}: ${message}`,
    );
  const specifier = VALIDATORS[`${object.apiVersion}/${object.kind}`];
  if (specifier === undefined) return [`${title(object)}: ${object.apiVersion} has no known schema`];
  const model = Object.values((await import(specifier)) as Record<string, Model>)[0];
  if (model === undefined) throw new Error(`${specifier} exports nothing`);
  const watch = watched(object);
  try {
    model.prototype.validate.call(watch.value);
  } catch (error) {
    // The class of the validators' errors is not exported, so every error is reported as a problem.
    return [`${title(object)}: ${(error as Error).message}`];
  }
  // The validators tolerate unknown fields, but read every field that the schema names: an unread field is
  // unknown.
  const unread = firstUnread(object, watch.read);
  return unread === undefined ? [] : [`${title(object)}: unknown field ${unread}`];
}

/** A wrapped object, and which of its fields were read, at any depth. */
interface Watched {
  readonly value: unknown;
  /** Paths such as `/spec/containers/0/name`. */
  readonly read: ReadonlySet<string>;
}

/** Wraps plain data so that every read is recorded. */
function watched(data: unknown): Watched {
  const read = new Set<string>();
  const wrap = (value: unknown, path: string): unknown => {
    if (typeof value !== 'object' || value === null) return value;
    return new Proxy(value, {
      get(target, key): unknown {
        const found: unknown = Reflect.get(target, key);
        if (typeof key === 'symbol' || !Object.hasOwn(target, key)) return found;
        read.add(`${path}/${key}`);
        return wrap(found, `${path}/${key}`);
      },
    });
  };
  return { value: wrap(data, ''), read };
}

/** Returns the path of the first field that was not read, or undefined. */
function firstUnread(data: unknown, read: ReadonlySet<string>, path = ''): string | undefined {
  if (typeof data !== 'object' || data === null) return undefined;
  for (const [key, value] of Object.entries(data)) {
    const at = `${path}/${key}`;
    const unread = read.has(at) ? firstUnread(value, read, at) : at;
    if (unread !== undefined) return unread;
  }
  return undefined;
}

// Schemas of the operators' custom resources: the fields that the manifests may contain, as defined by
// RabbitMQ's cluster operator 2.22 and by CloudNativePG 1.30. Any other field is unknown until it is added
// here.

const quantity = z.string().regex(/^\d+(m|[KMGT]i)?$/);
const named = z.strictObject({ name: z.string().min(1) });
const resources = z.strictObject({
  requests: z.strictObject({ cpu: quantity, memory: quantity }),
  limits: z.strictObject({ cpu: quantity.optional(), memory: quantity }),
});
const parameters = z.record(z.string(), z.string());

function resource<Spec extends z.ZodType>(spec: Spec) {
  const metadata = z.strictObject({
    name: z.string(),
    namespace: z.string().optional(),
    labels: parameters.optional(),
    annotations: parameters.optional(),
  });
  return z.strictObject({ apiVersion: z.string(), kind: z.string(), metadata, spec });
}

const spread = z.strictObject({
  maxSkew: z.int().positive(),
  topologyKey: z.string(),
  whenUnsatisfiable: z.enum(['DoNotSchedule', 'ScheduleAnyway']),
  labelSelector: z.strictObject({ matchLabels: parameters }),
});
const podOverride = z.strictObject({ containers: z.tuple([]), topologySpreadConstraints: z.array(spread) });

const rabbitmqCluster = z.strictObject({
  image: z.string(),
  replicas: z.int().nonnegative(),
  tls: z.strictObject({ secretName: z.string(), disableNonTLSListeners: z.boolean() }),
  persistence: z.strictObject({ storage: quantity, storageClassName: z.string().optional() }),
  resources,
  rabbitmq: z.strictObject({
    additionalConfig: z.string().max(100_000),
    envConfig: z.string().max(100_000),
  }),
  override: z.strictObject({
    statefulSet: z.strictObject({
      spec: z.strictObject({ template: z.strictObject({ spec: podOverride }) }),
    }),
  }),
});

const volume = z.strictObject({ size: quantity, storageClass: z.string().optional() });
const synchronous = z.strictObject({
  method: z.enum(['any', 'first']),
  number: z.int().positive(),
  dataDurability: z.enum(['required', 'preferred']),
  failoverQuorum: z.boolean(),
});
const role = z.strictObject({ name: z.string(), login: z.boolean(), passwordSecret: named });

const cluster = z.strictObject({
  imageName: z.string(),
  instances: z.int().positive(),
  postgresql: z.strictObject({ synchronous, parameters }),
  affinity: z.strictObject({
    enablePodAntiAffinity: z.boolean(),
    topologyKey: z.string(),
    podAntiAffinityType: z.enum(['preferred', 'required']),
  }),
  storage: volume,
  walStorage: volume,
  resources,
  managed: z.strictObject({ roles: z.array(role) }),
});

const pooler = z.strictObject({
  cluster: named,
  type: z.enum(['rw', 'ro', 'r']),
  instances: z.int().positive(),
  pgbouncer: z.strictObject({ poolMode: z.enum(['session', 'transaction']), parameters }),
});

/** Schemas of the operators' custom resources, by apiVersion and kind. */
const OPERATOR_SCHEMAS: Readonly<Record<string, z.ZodType>> = {
  'rabbitmq.com/v1beta1/RabbitmqCluster': resource(rabbitmqCluster),
  'postgresql.cnpg.io/v1/Cluster': resource(cluster),
  'postgresql.cnpg.io/v1/Database': resource(
    z.strictObject({ name: z.string(), owner: z.string(), cluster: named }),
  ),
  'postgresql.cnpg.io/v1/Pooler': resource(pooler),
};

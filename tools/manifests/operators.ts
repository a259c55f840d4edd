import { z } from 'zod';

/** The custom resources of operators: the fields that may stand in the manifests, after the definitions of RabbitMQ's cluster operator 2.22 and
 *  of CloudNativePG 1.30. Another field is an unknown one until it is added here. */
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
  ...{ storage: volume, walStorage: volume, resources },
  managed: z.strictObject({ roles: z.array(role) }),
});

const pooler = z.strictObject({
  cluster: named,
  type: z.enum(['rw', 'ro', 'r']),
  instances: z.int().positive(),
  pgbouncer: z.strictObject({ poolMode: z.enum(['session', 'transaction']), parameters }),
});

/** By apiVersion and kind. */
export const OPERATOR_SCHEMAS: Readonly<Record<string, z.ZodType>> = {
  'rabbitmq.com/v1beta1/RabbitmqCluster': resource(rabbitmqCluster),
  'postgresql.cnpg.io/v1/Cluster': resource(cluster),
  'postgresql.cnpg.io/v1/Database': resource(
    z.strictObject({ name: z.string(), owner: z.string(), cluster: named }),
  ),
  'postgresql.cnpg.io/v1/Pooler': resource(pooler),
};

import { title } from '../kubernetes-object.ts';
import type { Fields, KubernetesObject, Value } from '../kubernetes-object.ts';

/**
 * A fault to make in one object of a rendering, to prove that a check finds it.
 * @property object beginning of the object's title, e.g. `Deployment/auth-service`
 * @property at path of the field, with dots
 * @property value new value of the field; undefined deletes it
 * @property message part of the problem that the check must report
 */
export type Fault = readonly [
  what: string,
  object: string,
  at: string,
  value: Value | undefined,
  message: string,
];

/**
 * Returns a copy of the objects with the fault in it.
 * @throws {Error} if the object or the field's parent does not exist
 */
export function withFault(
  objects: readonly KubernetesObject[],
  titlePrefix: string,
  at: string,
  value: Value | undefined,
): KubernetesObject[] {
  const copy = structuredClone(objects) as KubernetesObject[];
  const object = copy.find((each) => title(each).startsWith(titlePrefix));
  if (object === undefined) throw new Error(`there is no ${titlePrefix}`);
  const keys = at.split('.');
  const last = keys.pop() ?? '';
  const place = keys.reduce<Fields | undefined>(
    (fields, key) => fields?.[key] as Fields | undefined,
    object as unknown as Fields,
  );
  if (place === undefined) throw new Error(`${titlePrefix} has no ${keys.join('.')}`);
  if (value === undefined) delete place[last];
  else place[last] = value;
  return copy;
}

const AUTH = 'Deployment/auth-service';
export const POD = 'spec.template.spec';
export const CONTAINER = `${POD}.containers.0`;

/** One fault for each rule about pods. */
export const PODS: readonly Fault[] = [
  [
    'a mounted API token',
    AUTH,
    `${POD}.automountServiceAccountToken`,
    undefined,
    'automountServiceAccountToken must be false',
  ],
  [
    'variables for every Service',
    AUTH,
    `${POD}.enableServiceLinks`,
    undefined,
    'enableServiceLinks must be false',
  ],
  [
    'a writable file system',
    AUTH,
    `${CONTAINER}.securityContext.readOnlyRootFilesystem`,
    false,
    'readOnlyRootFilesystem',
  ],
  ['no limit', AUTH, `${CONTAINER}.resources.limits.cpu`, undefined, 'needs requests and limits'],
  ['no request', AUTH, `${CONTAINER}.resources.requests`, undefined, 'needs requests and limits'],
  [
    'an image without a tag',
    AUTH,
    `${CONTAINER}.image`,
    'registry:5000/auth-service',
    'has no fixed version',
  ],
  ['the latest image', AUTH, `${CONTAINER}.image`, 'auth-service:latest', 'has no fixed version'],
  ['no limit for the heap', AUTH, `${CONTAINER}.env`, [], 'must set --max-old-space-size'],
  ['no limit for the young generation', AUTH, `${CONTAINER}.env`, [], 'must set --max-semi-space-size'],
  [
    'a heap as large as the pod',
    AUTH,
    `${CONTAINER}.resources.limits.memory`,
    '320Mi',
    'the heap must leave',
  ],
  [
    'hashes that fill the memory',
    'ConfigMap/auth-service-config',
    'data.PASSWORD_HASH_CONCURRENCY',
    '16',
    'heap and password hashes',
  ],
  [
    'a spread over other pods',
    AUTH,
    `${POD}.topologySpreadConstraints.0.labelSelector.matchLabels`,
    { x: 'y' },
    'topology spread',
  ],
  ['no startup probe', AUTH, `${CONTAINER}.startupProbe`, undefined, 'needs a startup probe'],
  ['no readiness probe', AUTH, `${CONTAINER}.readinessProbe`, undefined, 'needs a readiness probe'],
  ['no liveness probe', AUTH, `${CONTAINER}.livenessProbe`, undefined, 'needs a liveness probe'],
  ['no preStop', AUTH, `${CONTAINER}.lifecycle`, undefined, 'needs a preStop sleep'],
  ['a short grace period', AUTH, `${POD}.terminationGracePeriodSeconds`, 39, 'the grace period is shorter'],
  [
    'a longer shutdown',
    'ConfigMap/task-service-config',
    'data.SHUTDOWN_TIMEOUT_MS',
    '40000',
    'the grace period is shorter',
  ],
];

/** One fault for each rule about rollouts and disruptions. */
export const ROLLOUTS: readonly Fault[] = [
  [
    'a rollout with a replica missing',
    AUTH,
    'spec.strategy.rollingUpdate.maxUnavailable',
    1,
    'a rollout must start',
  ],
  ['a rollout of all replicas at once', AUTH, 'spec.strategy', { type: 'Recreate' }, 'a rollout must start'],
  ['replicas beside the autoscaler', AUTH, 'spec.replicas', 2, 'replicas belong to'],
  ['one replica', 'HorizontalPodAutoscaler/auth-service', 'spec.minReplicas', 1, 'minReplicas must be'],
  ['no room to scale', 'HorizontalPodAutoscaler/auth-service', 'spec.maxReplicas', 2, 'maxReplicas must'],
  [
    'an autoscaler of nothing',
    'HorizontalPodAutoscaler/auth-service',
    'spec.scaleTargetRef.name',
    'x',
    'needs exactly one Horizontal',
  ],
  [
    'a budget that allows no eviction',
    'PodDisruptionBudget/auth-service',
    'spec.maxUnavailable',
    0,
    'the budget must',
  ],
  [
    'a budget without pods',
    'PodDisruptionBudget/auth-service',
    'spec.selector.matchLabels',
    { x: 'y' },
    'the selector matches no pod',
  ],
  [
    'a Deployment without a budget',
    'PodDisruptionBudget/auth-service',
    'spec.selector.matchLabels',
    { x: 'y' },
    'needs exactly one PodD',
  ],
];

/** One fault for each reference whose target must exist. */
export const REFERENCES: readonly Fault[] = [
  ['a missing service account', AUTH, `${POD}.serviceAccountName`, 'x', 'there is no service account x'],
  ['a missing ConfigMap', AUTH, `${CONTAINER}.envFrom.0.configMapRef.name`, 'x', 'there is no ConfigMap x'],
  [
    'a probe of a missing port',
    AUTH,
    `${CONTAINER}.livenessProbe.httpGet.port`,
    'web',
    'a probe asks port web',
  ],
  [
    'a Deployment without its pods',
    AUTH,
    'spec.selector.matchLabels',
    { x: 'y' },
    'does not match its own pods',
  ],
  ['a Service without pods', 'Service/auth-service', 'spec.selector', { x: 'y' }, 'matches 0 pod templates'],
  [
    'a Service for all pods',
    'Service/auth-service',
    'spec.selector',
    { 'app.kubernetes.io/component': 'service' },
    'matches 3 pod templates',
  ],
  [
    'a Service to a missing port',
    'Service/auth-service',
    'spec.ports.0.targetPort',
    'web',
    'the pods have no port web',
  ],
  [
    'an Ingress to a missing port',
    'Ingress/auth-service',
    'spec.rules.0.http.paths.0.backend.service.port.name',
    'web',
    'no port web of a Service',
  ],
  [
    'a route to a missing Service',
    'HTTPRoute/auth-service',
    'spec.rules.0.backendRefs.0.name',
    'x',
    'of a Service x',
  ],
  [
    'a monitor without a Service',
    'ServiceMonitor/auth-service',
    'spec.selector.matchLabels',
    { x: 'y' },
    'matches 0 Services',
  ],
  [
    'a monitor of a missing port',
    'ServiceMonitor/auth-service',
    'spec.endpoints.0.port',
    'x',
    'there is no port x',
  ],
  ['a wrong PORT', 'ConfigMap/auth-service-config', 'data.PORT', '3001', 'the port http is not PORT'],
  [
    'a wrong METRICS_PORT',
    'ConfigMap/auth-service-config',
    'data.METRICS_PORT',
    '1',
    'the port metrics is not',
  ],
  [
    'listening on the loopback interface only',
    'ConfigMap/auth-service-config',
    'data.HOST',
    '127.0.0.1',
    'HOST must be',
  ],
  ['two issuers', 'ConfigMap/task-service-config', 'data.TOKEN_ISSUER', 'x', 'TOKEN_ISSUER differs'],
];

/** One fault for each rule about network policies. */
export const NETWORK: readonly Fault[] = [
  [
    'a policy without pods',
    'NetworkPolicy/auth-service',
    'spec.podSelector',
    { matchLabels: { x: 'y' } },
    'the pod selector matches no pod',
  ],
  [
    'a pod without a policy',
    'NetworkPolicy/auth-service-migrate',
    'spec.policyTypes',
    ['Egress'],
    'no network policy covers',
  ],
  [
    'an unknown peer',
    'NetworkPolicy/settings-service',
    'spec.egress.1.to.0.podSelector.matchLabels',
    { x: 'y' },
    'no pod has the labels',
  ],
  [
    'an unknown port of a peer',
    'NetworkPolicy/settings-service',
    'spec.egress.1.ports.0.port',
    'web',
    'there is no port web',
  ],
  [
    'an unknown port of its own',
    'NetworkPolicy/auth-service',
    'spec.ingress.0.ports.0.port',
    'web',
    'there is no port web',
  ],
  [
    'ingress from anywhere',
    'NetworkPolicy/auth-service',
    'spec.ingress.0.from',
    undefined,
    'allows ingress from anywhere',
  ],
  ['egress to anywhere', 'NetworkPolicy/auth-service', 'spec.egress', [{}], 'allows egress to anywhere'],
];

const TASK = 'Deployment/task-service';
const RANDOM = Buffer.alloc(32, 'a secret of 32 bytes').toString('base64url');

/** One fault for each rule about secrets. */
export const SECRETS: readonly Fault[] = [
  ['a Secret', 'ServiceAccount/auth-service', 'kind', 'Secret', 'secrets are referred to'],
  [
    'a secret by its name',
    'ConfigMap/auth-service-config',
    'data.CURSOR_HMAC_KEY',
    'x',
    'CURSOR_HMAC_KEY holds a secret',
  ],
  [
    'a key in headers',
    'ConfigMap/auth-service-config',
    'data.OTEL_EXPORTER_OTLP_HEADERS',
    'k=v',
    'OTEL_EXPORTER_OTLP_HEADERS holds a secret',
  ],
  [
    'a secret by its value',
    'ConfigMap/auth-service-config',
    'data.TOKEN_AUDIENCE',
    RANDOM,
    'TOKEN_AUDIENCE holds a secret',
  ],
  [
    'a password in an address',
    'ConfigMap/auth-service-config',
    'data.CUSTOMERS_SERVICE_URL',
    'http://a:b@c',
    'CUSTOMERS_SERVICE_URL holds',
  ],
  [
    'a password in a pod',
    TASK,
    `${CONTAINER}.env`,
    [{ name: 'RABBITMQ_MAIN_URL', value: 'amqp://a:b@c' }],
    'RABBITMQ_MAIN_URL holds',
  ],
  [
    'the owner’s secret in a service',
    AUTH,
    `${CONTAINER}.env.2.valueFrom.secretKeyRef.name`,
    'auth-service-migration-secrets',
    'secret of the owner',
  ],
];

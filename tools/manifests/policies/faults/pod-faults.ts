import type { FaultRow } from './fault.ts';

const AUTH = 'Deployment/auth-service';
const POD = 'spec.template.spec';
const CONTAINER = `${POD}.containers.0`;

/** One mistake for each rule about pods. */
export const PODS: readonly FaultRow[] = [
  [
    'a token of the API',
    AUTH,
    POD,
    (f) => delete f.automountServiceAccountToken,
    'automountServiceAccountToken must be false',
  ],
  [
    'variables for every Service',
    AUTH,
    POD,
    (f) => delete f.enableServiceLinks,
    'enableServiceLinks must be false',
  ],
  [
    'a file system to write to',
    AUTH,
    `${CONTAINER}.securityContext`,
    (f) => (f.readOnlyRootFilesystem = false),
    'readOnlyRootFilesystem',
  ],
  ['no limit', AUTH, `${CONTAINER}.resources.limits`, (f) => delete f.cpu, 'needs requests and limits'],
  ['no request', AUTH, `${CONTAINER}.resources`, (f) => delete f.requests, 'needs requests and limits'],
  [
    'an image without a tag',
    AUTH,
    CONTAINER,
    (f) => (f.image = 'registry:5000/auth-service'),
    'has no fixed version',
  ],
  ['the latest image', AUTH, CONTAINER, (f) => (f.image = 'auth-service:latest'), 'has no fixed version'],
  ['no limit for the heap', AUTH, CONTAINER, (f) => (f.env = []), 'must set --max-old-space-size'],
  [
    'a heap as large as the pod',
    AUTH,
    `${CONTAINER}.resources.limits`,
    (f) => (f.memory = '320Mi'),
    'the heap must leave',
  ],
  [
    'hashes that fill the memory',
    'ConfigMap/auth-service-config',
    'data',
    (f) => (f.PASSWORD_HASH_CONCURRENCY = '16'),
    'heap and password hashes',
  ],
  [
    'spread that counts others',
    AUTH,
    `${POD}.topologySpreadConstraints.0.labelSelector`,
    (f) => (f.matchLabels = { x: 'y' }),
    'topology spread',
  ],
  ['no startup probe', AUTH, CONTAINER, (f) => delete f.startupProbe, 'needs a startup probe'],
  ['no readiness probe', AUTH, CONTAINER, (f) => delete f.readinessProbe, 'needs a readiness probe'],
  ['no liveness probe', AUTH, CONTAINER, (f) => delete f.livenessProbe, 'needs a liveness probe'],
  ['no preStop', AUTH, CONTAINER, (f) => delete f.lifecycle, 'needs a preStop sleep'],
  [
    'a short grace period',
    AUTH,
    POD,
    (f) => (f.terminationGracePeriodSeconds = 39),
    'the grace period is shorter',
  ],
  [
    'a longer shutdown',
    'ConfigMap/task-service-config',
    'data',
    (f) => (f.SHUTDOWN_TIMEOUT_MS = '40000'),
    'the grace period is shorter',
  ],
];

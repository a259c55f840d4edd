import type { FaultRow } from './fault.ts';

const AUTH = 'Deployment/auth-service';
const POD = 'spec.template.spec';
const CONTAINER = `${POD}.containers.0`;

/** One mistake for each reference that must lead somewhere. */
export const REFERENCES: readonly FaultRow[] = [
  [
    'an account that is not there',
    AUTH,
    POD,
    (f) => (f.serviceAccountName = 'x'),
    'there is no service account x',
  ],
  [
    'a ConfigMap that is not there',
    AUTH,
    `${CONTAINER}.envFrom.0.configMapRef`,
    (f) => (f.name = 'x'),
    'there is no ConfigMap x',
  ],
  [
    'a probe of no port',
    AUTH,
    `${CONTAINER}.livenessProbe.httpGet`,
    (f) => (f.port = 'web'),
    'a probe asks port web',
  ],
  [
    'a Deployment without its pods',
    AUTH,
    'spec.selector',
    (f) => (f.matchLabels = { x: 'y' }),
    'does not match its own pods',
  ],
  [
    'a Service without pods',
    'Service/auth-service',
    'spec',
    (f) => (f.selector = { x: 'y' }),
    'matches 0 pod templates',
  ],
  [
    'a Service for all pods',
    'Service/auth-service',
    'spec',
    (f) => (f.selector = { 'app.kubernetes.io/component': 'service' }),
    'matches 3 pod templates',
  ],
  [
    'a Service to no port',
    'Service/auth-service',
    'spec.ports.0',
    (f) => (f.targetPort = 'web'),
    'the pods have no port web',
  ],
  [
    'an Ingress to no port',
    'Ingress/auth-service',
    'spec.rules.0.http.paths.0.backend.service.port',
    (f) => (f.name = 'web'),
    'no port web of a Service',
  ],
  [
    'a route to no Service',
    'HTTPRoute/auth-service',
    'spec.rules.0.backendRefs.0',
    (f) => (f.name = 'x'),
    'of a Service x',
  ],
  [
    'a monitor of nothing',
    'ServiceMonitor/auth-service',
    'spec.selector',
    (f) => (f.matchLabels = { x: 'y' }),
    'matches 0 Services',
  ],
  [
    'a monitor of no port',
    'ServiceMonitor/auth-service',
    'spec.endpoints.0',
    (f) => (f.port = 'x'),
    'there is no port x',
  ],
  [
    'PORT elsewhere',
    'ConfigMap/auth-service-config',
    'data',
    (f) => (f.PORT = '3001'),
    'the port http is not PORT',
  ],
  [
    'METRICS_PORT elsewhere',
    'ConfigMap/auth-service-config',
    'data',
    (f) => (f.METRICS_PORT = '1'),
    'the port metrics is not',
  ],
  [
    'listening to itself only',
    'ConfigMap/auth-service-config',
    'data',
    (f) => (f.HOST = '127.0.0.1'),
    'HOST must be',
  ],
  [
    'two issuers',
    'ConfigMap/task-service-config',
    'data',
    (f) => (f.TOKEN_ISSUER = 'x'),
    'TOKEN_ISSUER differs',
  ],
];

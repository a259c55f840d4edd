import type { FaultRow } from './fault.ts';

const AUTH = 'Deployment/auth-service';
const TASK = 'Deployment/task-service';
const CONTAINER = 'spec.template.spec.containers.0';
const RANDOM = Buffer.alloc(32, 'a secret of 32 bytes').toString('base64url');

/** One mistake for each rule about secrets. */
export const SECRETS: readonly FaultRow[] = [
  ['a Secret', 'ServiceAccount/auth-service', '', (f) => (f.kind = 'Secret'), 'secrets are referred to'],
  [
    'a secret by its name',
    'ConfigMap/auth-service-config',
    'data',
    (f) => (f.CURSOR_HMAC_KEY = 'x'),
    'CURSOR_HMAC_KEY holds a secret',
  ],
  [
    'a key in headers',
    'ConfigMap/auth-service-config',
    'data',
    (f) => (f.OTEL_EXPORTER_OTLP_HEADERS = 'k=v'),
    'OTEL_EXPORTER_OTLP_HEADERS holds a secret',
  ],
  [
    'a secret by its look',
    'ConfigMap/auth-service-config',
    'data',
    (f) => (f.TOKEN_AUDIENCE = RANDOM),
    'TOKEN_AUDIENCE holds a secret',
  ],
  [
    'a password in an address',
    'ConfigMap/auth-service-config',
    'data',
    (f) => (f.CUSTOMERS_SERVICE_URL = 'http://a:b@c'),
    'CUSTOMERS_SERVICE_URL holds',
  ],
  [
    'a password in a pod',
    TASK,
    CONTAINER,
    (f) => (f.env = [{ name: 'RABBITMQ_MAIN_URL', value: 'amqp://a:b@c' }]),
    'RABBITMQ_MAIN_URL holds',
  ],
  [
    'the owner’s secret in a service',
    AUTH,
    `${CONTAINER}.env.2.valueFrom.secretKeyRef`,
    (f) => (f.name = 'auth-service-migration-secrets'),
    'secret of the owner',
  ],
];

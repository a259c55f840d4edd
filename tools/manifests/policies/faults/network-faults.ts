import type { FaultRow } from './fault.ts';

/** One mistake for each rule about network policies. */
export const NETWORK: readonly FaultRow[] = [
  [
    'a policy for nobody',
    'NetworkPolicy/auth-service',
    'spec',
    (f) => (f.podSelector = { matchLabels: { x: 'y' } }),
    'the pod selector matches no pod',
  ],
  [
    'a pod without a policy',
    'NetworkPolicy/auth-service-migrate',
    'spec',
    (f) => (f.policyTypes = ['Egress']),
    'no network policy covers',
  ],
  [
    'an unknown peer',
    'NetworkPolicy/settings-service',
    'spec.egress.1.to.0.podSelector',
    (f) => (f.matchLabels = { x: 'y' }),
    'no pod has the labels',
  ],
  [
    'an unknown port of a peer',
    'NetworkPolicy/settings-service',
    'spec.egress.1.ports.0',
    (f) => (f.port = 'web'),
    'there is no port web',
  ],
  [
    'an unknown port of its own',
    'NetworkPolicy/auth-service',
    'spec.ingress.0.ports.0',
    (f) => (f.port = 'web'),
    'there is no port web',
  ],
  [
    'everybody coming in',
    'NetworkPolicy/auth-service',
    'spec.ingress.0',
    (f) => delete f.from,
    'lets everybody in',
  ],
  [
    'everything going out',
    'NetworkPolicy/auth-service',
    'spec',
    (f) => (f.egress = [{}]),
    'lets everything out',
  ],
];

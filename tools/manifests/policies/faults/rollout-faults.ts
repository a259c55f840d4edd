import type { FaultRow } from './fault.ts';

const AUTH = 'Deployment/auth-service';

/** One mistake for each rule about rollouts and disruptions. */
export const ROLLOUTS: readonly FaultRow[] = [
  [
    'a gap in a rollout',
    AUTH,
    'spec.strategy.rollingUpdate',
    (f) => (f.maxUnavailable = 1),
    'a rollout must start',
  ],
  ['all at once', AUTH, 'spec', (f) => (f.strategy = { type: 'Recreate' }), 'a rollout must start'],
  ['replicas beside the autoscaler', AUTH, 'spec', (f) => (f.replicas = 2), 'replicas belong to'],
  [
    'one replica',
    'HorizontalPodAutoscaler/auth-service',
    'spec',
    (f) => (f.minReplicas = 1),
    'minReplicas must be',
  ],
  [
    'nowhere to scale',
    'HorizontalPodAutoscaler/auth-service',
    'spec',
    (f) => (f.maxReplicas = 2),
    'maxReplicas must',
  ],
  [
    'an autoscaler of nothing',
    'HorizontalPodAutoscaler/auth-service',
    'spec.scaleTargetRef',
    (f) => (f.name = 'x'),
    'needs exactly one Horizontal',
  ],
  [
    'a budget that lets nobody go',
    'PodDisruptionBudget/auth-service',
    'spec',
    (f) => (f.maxUnavailable = 0),
    'the budget must',
  ],
  [
    'a budget for others',
    'PodDisruptionBudget/auth-service',
    'spec.selector',
    (f) => (f.matchLabels = { x: 'y' }),
    'the selector matches no pod',
  ],
  [
    'a budget for others, again',
    'PodDisruptionBudget/auth-service',
    'spec.selector',
    (f) => (f.matchLabels = { x: 'y' }),
    'needs exactly one PodD',
  ],
];

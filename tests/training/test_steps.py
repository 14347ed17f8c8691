"""SUSTrain, SlimTrain and USTrain against their formulas, in double precision."""

import copy
import math

import pytest
import torch

from slimfl.experiment import TrainingSection
from slimfl.nn import at_width, segments
from slimfl.training import configured_step, hard_loss, soft_loss, step

TWO, FOUR = (0.5, 1.0), (0.25, 0.5, 0.75, 1.0)
WEIGHTS = {TWO: (0.3, 0.7), FOUR: (0.1, 0.35, 0.05, 0.5)}


def named(algorithm, order):
    """The step that a section with these two words means; one width has no order."""
    if algorithm == "one-width":
        return step(algorithm)
    return step(configured_step(TrainingSection(algorithm=algorithm, order=order)))


class Bench:
    """A network, a batch and an optimiser, with every backward pass and step counted."""

    def __init__(self, network, widths, learning_rate=0.1):
        self.network = copy.deepcopy(network).double()
        self.widths = widths
        random = torch.Generator().manual_seed(7)
        self.images = torch.randn(5, 1, 6, 6, dtype=torch.float64, generator=random)
        self.labels = torch.randint(3, (5,), generator=random)
        self.optimiser = torch.optim.SGD(self.network.parameters(), lr=learning_rate)
        self.updates = 0
        self.forwards = []

    def forward(self, i):
        self.forwards.append(i)
        return self.logits(i)

    def logits(self, i):
        with at_width(self.widths[i]):
            return self.network(self.images)

    def update(self, loss):
        self.updates += 1
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()

    def run(self, name, order="sequential", weights=None, visited=None):
        visited = range(len(self.widths)) if visited is None else visited
        weights = WEIGHTS[self.widths] if weights is None else weights
        return named(name, order)(self.forward, self.labels, list(visited), weights, self.update)

    def parameters(self):
        return torch.cat([p.detach().reshape(-1).clone() for p in self.network.parameters()])

    def gradients(self):
        return torch.cat([p.grad.reshape(-1).clone() for p in self.network.parameters()])

    def set_parameters(self, vector):
        # a copy, because the parameters become views of it
        torch.nn.utils.vector_to_parameters(vector.clone(), self.network.parameters())

    def hard(self, i):
        """F: minus the mean logarithm of the label's probability."""
        logits = self.logits(i)
        chosen = logits[range(len(self.labels)), self.labels]
        return (torch.logsumexp(logits, 1) - chosen).mean()

    def soft(self, i, teacher):
        """F-hat: the teacher's probabilities times minus the student's log probabilities."""
        student = self.logits(i)
        log_probabilities = student - torch.logsumexp(student, 1, keepdim=True)
        return -(torch.softmax(teacher, 1) * log_probabilities).sum(1).mean()


@pytest.fixture(params=[TWO, FOUR], ids=["two widths", "four widths"])
def bench(request, make_network):
    return Bench(make_network(), request.param)


def central_differences(bench, function, step=1e-5):
    """The gradient of a function of the parameters, one parameter at a time."""
    start = bench.parameters()
    gradient = torch.zeros_like(start)
    for index in range(len(start)):
        values = []
        for sign in (1, -1):
            moved = start.clone()
            moved[index] += sign * step
            bench.set_parameters(moved)
            with torch.no_grad():
                values.append(function().item())
        gradient[index] = (values[0] - values[1]) / (2 * step)
    bench.set_parameters(start)
    return gradient


def test_sustrain_gradients_are_autograds_on_equation_1(bench):
    weights = WEIGHTS[bench.widths]
    reference = copy.deepcopy(bench)
    with torch.no_grad():
        teacher = reference.logits(-1)
    loss = weights[-1] * reference.hard(-1)
    for i in range(len(bench.widths) - 1):
        loss = loss + weights[i] * reference.soft(i, teacher)
    loss.backward()
    bench.run("sustrain")
    torch.testing.assert_close(bench.gradients(), reference.gradients())


def test_sustrain_does_one_backward_and_one_step(bench, monkeypatch):
    passes, steps = [], []
    backward = torch.Tensor.backward
    monkeypatch.setattr(torch.Tensor, "backward", lambda *a, **k: (passes.append(1), backward(*a)))
    bench.optimiser.register_step_post_hook(lambda *_: steps.append(1))
    bench.run("sustrain")
    assert (len(passes), len(steps), bench.updates) == (1, 1, 1)
    assert sorted(bench.forwards) == list(range(len(bench.widths)))


def test_no_gradient_reaches_the_teacher_through_the_students_loss(make_network):
    """Finite differences agree when the teacher's logits are frozen, and only then."""
    bench = Bench(make_network(), TWO, learning_rate=0.0)
    weights = WEIGHTS[TWO]
    with torch.no_grad():
        frozen = bench.logits(1)
    with_frozen = central_differences(
        bench, lambda: weights[1] * bench.hard(1) + weights[0] * bench.soft(0, frozen)
    )
    with_moving = central_differences(
        bench, lambda: weights[1] * bench.hard(1) + weights[0] * bench.soft(0, bench.logits(1))
    )
    bench.run("sustrain")
    torch.testing.assert_close(bench.gradients(), with_frozen, rtol=1e-5, atol=1e-8)
    assert (bench.gradients() - with_moving).abs().max() > 1e-3
    # what only the teacher has is moved by the labels alone
    outside = ~torch.from_numpy(segments(bench.network, TWO).mask(0.5))
    labels_alone = central_differences(bench, lambda: weights[1] * bench.hard(1))
    torch.testing.assert_close(
        bench.gradients()[outside], labels_alone[outside], rtol=1e-5, atol=1e-8
    )


def test_losses_come_back_unweighted_narrowest_first(bench):
    with torch.no_grad():
        teacher = bench.logits(-1)
        count = len(bench.widths)
        soft = [bench.soft(i, teacher) for i in range(count - 1)] + [bench.hard(-1)]
        hard = [bench.hard(i) for i in range(count)]
    start = bench.parameters()
    for (name, order), expected in {
        ("sustrain", "sequential"): soft,
        ("ustrain", "accumulate"): soft,
        ("slimtrain", "accumulate"): hard,
    }.items():
        bench.set_parameters(start)
        torch.testing.assert_close(torch.stack(bench.run(name, order)), torch.stack(expected))
    for name, expected in (("slimtrain", hard), ("ustrain", soft)):
        bench.set_parameters(start)  # with a zero rate, sequential losses are of one network
        for group in bench.optimiser.param_groups:
            group["lr"] = 0.0
        torch.testing.assert_close(torch.stack(bench.run(name)), torch.stack(expected))


def test_slimtrain_sequential_is_a_plain_loop_from_the_widest_on(bench):
    weights = WEIGHTS[bench.widths]
    reference = copy.deepcopy(bench)
    for i in (3, 2, 1, 0)[-len(bench.widths) :]:
        reference.optimiser.zero_grad()
        (weights[i] * reference.hard(i)).backward()
        reference.optimiser.step()
    bench.run("slimtrain")
    torch.testing.assert_close(bench.parameters(), reference.parameters())
    assert bench.updates == len(bench.widths)


def test_slimtrain_accumulate_adds_all_gradients_and_steps_once(bench):
    weights = WEIGHTS[bench.widths]
    reference = copy.deepcopy(bench)
    reference.optimiser.zero_grad()
    for i in range(len(bench.widths)):
        (weights[i] * reference.hard(i)).backward()
    reference.optimiser.step()
    bench.run("slimtrain", "accumulate")
    torch.testing.assert_close(bench.parameters(), reference.parameters())
    assert bench.updates == 1


def test_ustrain_sequential_teaches_with_the_logits_from_before_the_teachers_update(bench):
    weights = WEIGHTS[bench.widths]
    reference = copy.deepcopy(bench)
    with torch.no_grad():
        before = reference.logits(-1)
    reference.update(weights[-1] * reference.hard(-1))
    for i in (2, 1, 0)[-len(bench.widths) + 1 :]:
        reference.update(weights[i] * reference.soft(i, before))
    bench.run("ustrain")
    torch.testing.assert_close(bench.parameters(), reference.parameters())
    assert bench.updates == len(bench.widths)


def test_ustrain_accumulate_is_the_appendix_and_so_is_sustrain(bench):
    """E13: gradients of every width add up, one step; nothing tells it from SUSTrain."""
    weights = WEIGHTS[bench.widths]
    appendix, sustrain = copy.deepcopy(bench), copy.deepcopy(bench)
    appendix.optimiser.zero_grad()
    with torch.no_grad():
        teacher = appendix.logits(-1)
    (weights[-1] * appendix.hard(-1)).backward()
    for i in reversed(range(len(bench.widths) - 1)):
        (weights[i] * appendix.soft(i, teacher)).backward()
    appendix.optimiser.step()
    bench.run("ustrain", "accumulate")
    torch.testing.assert_close(bench.parameters(), appendix.parameters())
    assert bench.updates == 1
    sustrain.run("sustrain")
    assert torch.equal(bench.parameters(), sustrain.parameters())


@pytest.mark.parametrize("name", ["sustrain", "slimtrain", "ustrain"])
@pytest.mark.parametrize("order", ["sequential", "accumulate"])
def test_a_part_of_the_widths_uses_their_own_weights(make_network, name, order):
    """With widths 0 and 3 of four, it is the algorithm of two widths with these two weights."""
    four, two = Bench(make_network(), FOUR), Bench(make_network(), (0.25, 1.0))
    losses = four.run(name, order, visited=[0, 3])
    expected = two.run(name, order, weights=(WEIGHTS[FOUR][0], WEIGHTS[FOUR][3]))
    assert torch.equal(four.parameters(), two.parameters())
    torch.testing.assert_close(torch.stack(losses), torch.stack(expected))
    assert set(four.forwards) == {0, 3}


@pytest.mark.parametrize("i", range(4))
def test_one_width_learns_from_labels_and_touches_only_its_mask(make_network, i):
    bench = Bench(make_network(), FOUR)
    reference = copy.deepcopy(bench)
    before = bench.parameters()
    (loss,) = bench.run("one-width", visited=[i])
    reference.update(reference.hard(i))
    torch.testing.assert_close(bench.parameters(), reference.parameters())
    assert bench.updates == 1
    changed = (bench.parameters() != before).numpy()
    assert (changed == segments(bench.network, FOUR).mask(FOUR[i])).all()
    reference.set_parameters(before)
    torch.testing.assert_close(loss, reference.hard(i))


@pytest.mark.parametrize("order", ["sequential", "accumulate"])
@pytest.mark.parametrize("name", ["sustrain", "slimtrain", "ustrain"])
def test_with_a_single_width_every_algorithm_is_plain_training(make_network, name, order):
    bench, reference = (Bench(make_network(), (1.0,)) for _ in range(2))
    bench.run(name, order, weights=(1.0,))
    reference.update(reference.hard(0))
    torch.testing.assert_close(bench.parameters(), reference.parameters())


# the two cross-entropies against their sums written out


def softmax(row):
    top = max(row)
    powers = [math.exp(value - top) for value in row]
    return [power / sum(powers) for power in powers]


def test_hard_loss_is_the_mean_negative_log_probability_of_the_label():
    logits = torch.randn(5, 4, dtype=torch.float64)
    labels = torch.tensor([0, 3, 1, 1, 2])
    expected = [
        -math.log(softmax(r)[y]) for r, y in zip(logits.tolist(), labels.tolist(), strict=True)
    ]
    assert hard_loss(logits, labels).item() == pytest.approx(sum(expected) / 5)


def test_soft_loss_is_the_mean_cross_entropy_of_softmaxes():
    student, teacher = (3 * torch.randn(5, 4, dtype=torch.float64) for _ in range(2))
    expected = 0.0
    for row, taught in zip(student.tolist(), teacher.tolist(), strict=True):
        expected -= sum(t * math.log(s) for s, t in zip(softmax(row), softmax(taught), strict=True))
    assert soft_loss(student, teacher).item() == pytest.approx(expected / 5)


def test_soft_loss_gives_the_teacher_no_gradient():
    student = torch.randn(5, 4, requires_grad=True)
    teacher = torch.randn(5, 4, requires_grad=True)
    soft_loss(student, teacher).backward()
    assert teacher.grad is None
    expected = (torch.softmax(student, 1) - torch.softmax(teacher, 1)) / 5
    torch.testing.assert_close(student.grad, expected.detach())

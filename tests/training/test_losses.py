"""The two cross-entropies against their sums written out."""

import math

import pytest
import torch

from slimfl.training import hard_loss, soft_loss


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


def test_soft_loss_is_smallest_for_a_student_that_equals_its_teacher():
    teacher = torch.randn(6, 4)
    least = soft_loss(teacher, teacher)
    for _ in range(10):
        assert soft_loss(teacher + 0.3 * torch.randn(6, 4), teacher) > least


def test_a_very_sure_teacher_is_a_label():
    labels = torch.tensor([2, 0, 1])
    teacher = 100 * torch.nn.functional.one_hot(labels, 4).double()
    student = torch.randn(3, 4, dtype=torch.float64)
    torch.testing.assert_close(soft_loss(student, teacher), hard_loss(student, labels))
